# Swin of about ResNet-18's FLOPs on Fashion-MNIST. Two epochs: projects/small_data.
# vt train swin-tiny-32px_fashion-mnist
_base_ = ['../_base_/recipes/tokens_fashion-mnist.py', '../_base_/models/swin-tiny_32px.py']

model = _base_.architecture

optim_wrapper = dict(optimizer=dict(lr=3e-4))
