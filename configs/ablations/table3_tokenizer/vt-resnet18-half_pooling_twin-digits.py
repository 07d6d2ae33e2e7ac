# Table 3 of the paper: the cells of a grid as the first module's tokens. Scores: docs/ablations.md.
_base_ = '../../vt_resnet/vt-resnet18-half_twin-digits.py'

model = dict(backbone=dict(tokenizer=dict(type='vt.PoolingTokenizer')))
