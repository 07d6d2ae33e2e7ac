# ResNet-18 at half width on Fashion-MNIST. Not trained here yet.
# python tools/train.py configs/baselines/resnet18-half_fashion-mnist.py
_base_ = ['../_base_/models/resnet18-half_cifar.py', '../_base_/recipes/fashion-mnist.py']
