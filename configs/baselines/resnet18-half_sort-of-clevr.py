# ResNet-18 at half width on Sort-of-CLEVR's relational questions. Scores: docs/where.md.
# python tools/train.py configs/baselines/resnet18-half_sort-of-clevr.py --cfg-options randomness.seed=0
_base_ = [
    '../_base_/models/resnet18-half.py',
    '../_base_/datasets/sort-of-clevr.py',
    '../_base_/schedules/adamw-0.004_bs32-10e.py',
    '../_base_/default_runtime.py',
]

model = dict(backbone=dict(strides=(1, 2, 1, 2)), head=dict(num_classes=10))  # a map of 8x8 pixels
