# VT-ResNet-18 at half width, with the tuned recipe, on problem 7 of the SVRT. Scores: ../README.md.
# Top-1 89.26, 89.65, 90.53 % (seeds 0, 1, 2), 14.5 min, bfloat16: Intel(R) Xeon(R) Processor, 1 thread, torch 2.14.1.
# PYTHONPATH=. python tools/train.py projects/relations/configs/vt-resnet18-tuned-half_svrt-7.py
_base_ = [
    'vt-resnet18-half_svrt-7.py',
    '../../../configs/_base_/recipes/tuned_adamw.py',
]

optim_wrapper = dict(paramwise_cfg=_base_.tuned)
