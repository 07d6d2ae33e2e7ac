# VT-FPN on the relational scenes, with the recipe of its FPN baseline.
# Scores: docs/models.md.
# python tools/train.py configs/vt_fpn/vt-fpn_r18_relational-scenes.py --cfg-options randomness.seed=0
_base_ = '../baselines/fpn_r18_relational-scenes.py'

model = dict(neck=dict(type='vt.VTFPN', num_tokens=8, token_channels=1024))
