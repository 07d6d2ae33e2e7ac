# Table 3 of the paper: the map, resized to a grid, as tokens of the first module. Scores: ../ablations.md.
# PYTHONPATH=. python tools/train.py projects/relations/configs/vt-resnet18-half_pooling_twin-digits.py
_base_ = 'vt-resnet18-half_twin-digits.py'

model = dict(backbone=dict(tokenizer=dict(type='vt.PoolingTokenizer')))
