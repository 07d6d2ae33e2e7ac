# Table 11: positions in space alone.
_base_ = '../mvit-tiny_moving-digits.py'

model = dict(backbone=dict(position=dict(type='vt.SeparatePosition', time=False)))
