# Table 15: maxima of windows of 2s+1.
_base_ = '../mvit-tiny_moving-digits.py'

model = dict(backbone=dict(pooling='max', kernel='2s+1'))
