# VT-ResNet-18 of half the width, with normalised steps.
# Scores by rate and by number of images: docs/where.md.
# python tools/train.py configs/sample_efficiency/vt-resnet18-norm-half_2560-iters_svrt-1.py
_base_ = [
    'vt-resnet18-half_2560-iters_svrt-1.py',
    '../_base_/models/normalised.py',
]

model = dict(backbone=_base_.normalised)
