# VT-ResNet-18 on Fashion-MNIST. Six epochs: projects/small_data.
# vt train vt-resnet18_fashion-mnist
_base_ = ['../_base_/models/vt-resnet18_cifar.py', '../_base_/recipes/fashion-mnist.py']

optim_wrapper = dict(optimizer=dict(lr=5e-4))
