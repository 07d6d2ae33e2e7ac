# CaiT-S24 on Fashion-MNIST, enlarged to 64x64. Two epochs: projects/small_data.
# vt train cait-s24_fashion-mnist
_base_ = ['../_base_/recipes/tokens_fashion-mnist-64px.py', '../_base_/models/cait-s24.py']

model = _base_.architecture
