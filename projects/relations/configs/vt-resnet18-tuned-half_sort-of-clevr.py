# VT-ResNet-18 at half width, with the tuned recipe, on Sort-of-CLEVR's relational questions. Scores: ../README.md.
# Top-1 71.63, 71.58 % (seeds 0, 1), 5.2 min, bfloat16: AMD EPYC, 1 thread, torch 2.14.1.
# PYTHONPATH=. python tools/train.py projects/relations/configs/vt-resnet18-tuned-half_sort-of-clevr.py
_base_ = [
    'vt-resnet18-half_sort-of-clevr.py',
    '../../../configs/_base_/recipes/tuned_adamw.py',
]

optim_wrapper = dict(paramwise_cfg=_base_.tuned)
