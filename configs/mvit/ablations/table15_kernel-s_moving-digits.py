# Table 15: maxima of windows as long as their stride.
_base_ = '../mvit-tiny_moving-digits.py'

model = dict(backbone=dict(pooling='max', kernel='s'))
