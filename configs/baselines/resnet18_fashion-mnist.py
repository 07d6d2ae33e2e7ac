# ResNet-18 on Fashion-MNIST. Six epochs: projects/small_data.
# vt train resnet18_fashion-mnist
_base_ = ['../_base_/models/resnet18_cifar.py', '../_base_/recipes/fashion-mnist.py']

optim_wrapper = dict(optimizer=dict(lr=1.35e-2))
