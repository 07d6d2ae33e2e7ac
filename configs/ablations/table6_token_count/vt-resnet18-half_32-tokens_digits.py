# Table 6 of the paper: twice as many tokens. Scores: docs/ablations.md.
_base_ = '../../vt_resnet/vt-resnet18-half_digits.py'

model = dict(backbone=dict(num_tokens=32))
