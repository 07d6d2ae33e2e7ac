# DeiT of about ResNet-18's FLOPs on Fashion-MNIST. Two epochs: projects/small_data.
# vt train deit-small-32px_fashion-mnist
_base_ = ['../_base_/recipes/tokens_fashion-mnist.py', '../_base_/models/deit-small_32px.py']

model = _base_.architecture
