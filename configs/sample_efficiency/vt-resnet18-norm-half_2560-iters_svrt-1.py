# VT-ResNet-18 of half the width, with normalised steps. Scores: docs/where.md.
# Top-1 not measured yet.
# python tools/train.py configs/sample_efficiency/vt-resnet18-norm-half_2560-iters_svrt-1.py
_base_ = [
    'vt-resnet18-half_2560-iters_svrt-1.py',
    '../_base_/models/normalised.py',
]

model = dict(backbone=_base_.normalised)
