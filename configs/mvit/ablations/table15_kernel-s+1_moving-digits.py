# Table 15: maxima of windows of s+1.
_base_ = '../mvit-tiny_moving-digits.py'

model = dict(backbone=dict(pooling='max', kernel='s+1'))
