# Table 11: no positions.
_base_ = '../mvit-tiny_moving-digits.py'

model = dict(backbone=dict(position=None))
