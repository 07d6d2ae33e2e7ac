# VT-FPN on the relational scenes, with normalised steps: docs/training.md.
# Scores: docs/models.md.
# python tools/train.py configs/vt_fpn/vt-fpn-norm_r18_relational-scenes.py --cfg-options randomness.seed=0
_base_ = 'vt-fpn_r18_relational-scenes.py'

model = dict(neck=dict(step=0.3))  # of the schedule's tenth of the rate: 0.03 in all
optim_wrapper = dict(optimizer=dict(lr=6e-3))
