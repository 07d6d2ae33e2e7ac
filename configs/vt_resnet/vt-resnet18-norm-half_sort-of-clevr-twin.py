# VT-ResNet-18 at half width, with normalised steps, on Sort-of-CLEVR's non-relational questions. Scores: docs/where.md.
# Top-1 64.99, 60.06, 66.26 % (seeds 0, 1, 2), 3.8 min, bfloat16: Intel(R) Xeon(R) Processor, 1 thread, torch 2.14.1.
# python tools/train.py configs/vt_resnet/vt-resnet18-norm-half_sort-of-clevr-twin.py --cfg-options randomness.seed=0
_base_ = [
    'vt-resnet18-half_sort-of-clevr-twin.py',
    '../_base_/models/normalised.py',
]

model = dict(backbone=_base_.normalised)
