# VT-FPN on the relational scenes, with the recipe of its FPN baseline.
# Scores: ../README.md.
# PYTHONPATH=. python tools/train.py projects/relations/configs/vt-fpn_r18_relational-scenes.py
_base_ = 'fpn_r18_relational-scenes.py'

model = dict(neck=dict(type='vt.VTFPN', num_tokens=8, token_channels=1024))
