# VT-ResNet-18 at half width, with the tuned recipe, on Sort-of-CLEVR's non-relational questions. Scores: ../README.md.
# Top-1 64.99, 60.06, 66.26 % (seeds 0, 1, 2), 3.8 min, bfloat16: Intel(R) Xeon(R) Processor, 1 thread, torch 2.14.1.
# PYTHONPATH=. python tools/train.py projects/relations/configs/vt-resnet18-tuned-half_sort-of-clevr-twin.py
_base_ = [
    'vt-resnet18-half_sort-of-clevr-twin.py',
    '../../../configs/_base_/recipes/tuned_adamw.py',
]

optim_wrapper = dict(paramwise_cfg=_base_.tuned)
