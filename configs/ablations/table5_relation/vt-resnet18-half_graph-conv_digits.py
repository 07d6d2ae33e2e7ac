# Table 5 of the paper: learned edges relate the tokens, the same for every image. Scores: docs/ablations.md.
_base_ = '../../vt_resnet/vt-resnet18-half_digits.py'

model = dict(backbone=dict(relation=dict(type='vt.GraphConvolution')))
