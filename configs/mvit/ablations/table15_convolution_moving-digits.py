# Table 15: convolutions of s+1.
_base_ = '../mvit-tiny_moving-digits.py'

model = dict(backbone=dict(kernel='s+1'))
