# VT-ResNet-18 at half width on the twin digits with the tuned recipe: docs/training.md.
# Top-1 95.85, 96.78, 96.24, 96.44 % (seeds 0, 1, 2, 3), 1.3 min: AMD EPYC, 1 thread, torch 2.14.1.
# PYTHONPATH=. python tools/train.py projects/relations/configs/vt-resnet18-tuned-half_twin-digits.py
_base_ = [
    'vt-resnet18-half_twin-digits.py',
    '../../../configs/_base_/recipes/tuned_adamw.py',
]

optim_wrapper = dict(optimizer=dict(lr=4e-3), paramwise_cfg=_base_.tuned)
