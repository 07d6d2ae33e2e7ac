# Table 4 of the paper: learned filters in the later modules too. Scores: docs/ablations.md.
_base_ = '../../vt_resnet/vt-resnet18-half_twin-digits.py'

model = dict(backbone=dict(later_tokenizer=dict(type='vt.FilterTokenizer')))
