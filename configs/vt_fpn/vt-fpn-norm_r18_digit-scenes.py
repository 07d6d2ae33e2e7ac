# VT-FPN on the embedded scenes, with normalised steps: docs/training.md.
# mIoU not measured yet.
# python tools/train.py configs/vt_fpn/vt-fpn-norm_r18_digit-scenes.py --cfg-options randomness.seed=0
_base_ = [
    'vt-fpn_r18_digit-scenes.py',
    '../_base_/models/normalised.py',
]

model = dict(neck=_base_.normalised)
