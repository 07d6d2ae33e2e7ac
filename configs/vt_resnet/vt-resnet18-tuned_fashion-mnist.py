# VT-ResNet-18 on Fashion-MNIST with the tuned recipe: docs/training.md. Six epochs: projects/small_data.
# vt train vt-resnet18-tuned_fashion-mnist
_base_ = ['vt-resnet18_fashion-mnist.py', '../_base_/recipes/tuned_adamw.py']

optim_wrapper = dict(optimizer=dict(lr=1.35e-2), paramwise_cfg=_base_.tuned)
