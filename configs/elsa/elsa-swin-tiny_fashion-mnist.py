# ELSA-Swin-T on Fashion-MNIST, enlarged to 56x56. Two epochs: projects/small_data.
# vt train elsa-swin-tiny_fashion-mnist
_base_ = ['../_base_/recipes/tokens_fashion-mnist-56px.py', '../_base_/models/elsa-swin-tiny.py']

model = _base_.architecture
