# Table 11: no positions.
# python tools/train.py configs/mvit/ablations/table11_none_moving-digits.py
_base_ = '../mvit-tiny_moving-digits.py'

model = dict(backbone=dict(position=None))
