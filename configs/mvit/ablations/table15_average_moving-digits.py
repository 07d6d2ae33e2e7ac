# Table 15: averages of s+1.
_base_ = '../mvit-tiny_moving-digits.py'

model = dict(backbone=dict(pooling='average', kernel='s+1'))
