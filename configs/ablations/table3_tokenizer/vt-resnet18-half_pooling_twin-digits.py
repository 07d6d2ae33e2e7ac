# Table 3 of the paper: the map, resized to a grid, as tokens of the first module. Scores: docs/ablations.md.
# python tools/train.py configs/ablations/table3_tokenizer/vt-resnet18-half_pooling_twin-digits.py
_base_ = '../../vt_resnet/vt-resnet18-half_twin-digits.py'

model = dict(backbone=dict(tokenizer=dict(type='vt.PoolingTokenizer')))
