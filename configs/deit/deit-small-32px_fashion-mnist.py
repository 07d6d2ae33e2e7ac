# DeiT of about ResNet-18's FLOPs on Fashion-MNIST. Not trained here yet.
# python tools/train.py configs/deit/deit-small_fashion-mnist.py
_base_ = ['../_base_/recipes/tokens_fashion-mnist.py', '../_base_/models/deit-small_32px.py']

model = _base_.architecture
