# VT-ResNet-18 at half width on Fashion-MNIST with the tuned recipe: docs/training.md. Six epochs: projects/small_data.
# Top-1 92.83, 92.45, 92.53, 92.64, 92.72 % (seeds 0, 1, 2, 3, 4), 19.0 min: AMD EPYC, 1 thread, torch 2.14.1.
# vt train vt-resnet18-tuned-half_fashion-mnist
_base_ = ['vt-resnet18-half_fashion-mnist.py', '../_base_/recipes/tuned_adamw.py']

optim_wrapper = dict(optimizer=dict(lr=4.05e-2), paramwise_cfg=_base_.tuned)
