# MViTv2-T on Fashion-MNIST, enlarged to 64x64. Two epochs: projects/small_data.
# vt train mvitv2-tiny_fashion-mnist
_base_ = ['../_base_/recipes/tokens_fashion-mnist-64px.py', '../_base_/models/mvitv2-tiny.py']

model = _base_.architecture
