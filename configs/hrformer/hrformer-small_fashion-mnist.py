# HRFormer-S on Fashion-MNIST, enlarged to 56x56. Two epochs: projects/small_data.
# vt train hrformer-small_fashion-mnist
_base_ = ['../_base_/recipes/tokens_fashion-mnist-56px.py', '../_base_/models/hrformer-small.py']

model = _base_.architecture
