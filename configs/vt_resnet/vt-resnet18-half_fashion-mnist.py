# VT-ResNet-18 at half width on Fashion-MNIST. Six epochs: projects/small_data.
# vt train vt-resnet18-half_fashion-mnist
_base_ = ['../_base_/models/vt-resnet18-half_cifar.py', '../_base_/recipes/fashion-mnist.py']

optim_wrapper = dict(optimizer=dict(lr=5e-4))
