# VT-ResNet-18 on the embedded digits with the tuned recipe: docs/training.md.
# Top-1 100.00, 100.00, 99.44 % (seeds 0, 1, 2), 1.9 min: AMD EPYC, 1 thread, torch 2.14.1.
# vt train vt-resnet18-tuned_digits seed=0
_base_ = [
    'vt-resnet18_digits.py',
    '../_base_/recipes/tuned_adamw.py',
]

optim_wrapper = dict(optimizer=dict(lr=4e-3), paramwise_cfg=_base_.tuned)
