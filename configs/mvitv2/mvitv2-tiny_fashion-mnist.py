# MViTv2-T on Fashion-MNIST, enlarged to 64x64. Two epochs: projects/small_data.
# python tools/train.py configs/mvitv2/mvitv2-tiny_fashion-mnist.py
_base_ = ['../_base_/recipes/tokens_fashion-mnist-64px.py', '../_base_/models/mvitv2-tiny.py']

model = _base_.architecture
