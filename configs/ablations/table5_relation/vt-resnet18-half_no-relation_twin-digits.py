# Table 5 of the paper: nothing relates the tokens. Scores: docs/ablations.md.
_base_ = '../../vt_resnet/vt-resnet18-half_twin-digits.py'

model = dict(backbone=dict(relation=None))
