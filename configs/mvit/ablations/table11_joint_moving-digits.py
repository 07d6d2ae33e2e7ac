# Table 11: a position for each place of each frame.
_base_ = '../mvit-tiny_moving-digits.py'

model = dict(backbone=dict(position=dict(type='vt.AbsolutePosition')))
