# VT-ResNet-18 at half width, with the tuned recipe, on Pathfinder, short paths. Scores: ../README.md.
# Top-1 60.50, 59.47, 59.86 % (seeds 0, 1, 2), 0.8 min, bfloat16: Intel(R) Xeon(R) Processor, 1 thread, torch 2.14.1.
# PYTHONPATH=. python tools/train.py projects/relations/configs/vt-resnet18-tuned-half_pathfinder-short.py
_base_ = [
    'vt-resnet18-half_pathfinder-short.py',
    '../../../configs/_base_/recipes/tuned_adamw.py',
]

optim_wrapper = dict(paramwise_cfg=_base_.tuned)
