# ResNet-18 at half width on Fashion-MNIST. Six epochs: docs/benchmark.md.
# python tools/train.py configs/baselines/resnet18-half_fashion-mnist.py
_base_ = ['../_base_/models/resnet18-half_cifar.py', '../_base_/recipes/fashion-mnist.py']

optim_wrapper = dict(optimizer=dict(lr=1.35e-2))
