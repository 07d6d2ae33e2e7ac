# Table 7 of the paper: tokens are not written back to the map. Scores: docs/ablations.md.
_base_ = '../../vt_resnet/vt-resnet18-half_twin-digits.py'

model = dict(backbone=dict(projector=None))
