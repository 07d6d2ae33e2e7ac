# Table 7 of the paper: no projector: tokens are not added to the map. Scores: docs/ablations.md.
# python tools/train.py configs/ablations/table7_projector/vt-resnet18-half_no-projector_twin-digits.py
_base_ = '../../vt_resnet/vt-resnet18-half_twin-digits.py'

model = dict(backbone=dict(projector=None))
