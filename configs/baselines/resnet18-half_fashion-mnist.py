# ResNet-18 at half width on Fashion-MNIST. Six epochs: projects/small_data.
# Top-1 92.60, 92.25, 92.61, 92.50, 92.33 % (seeds 0, 1, 2, 3, 4), 19.4 min: AMD EPYC, 1 thread, torch 2.14.1.
# vt train resnet18-half_fashion-mnist
_base_ = ['../_base_/models/resnet18-half_cifar.py', '../_base_/recipes/fashion-mnist.py']

optim_wrapper = dict(optimizer=dict(lr=1.35e-2))
