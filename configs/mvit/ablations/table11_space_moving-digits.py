# Table 11: positions only in space.
# vt train table11_space_moving-digits
_base_ = '../mvit-tiny_moving-digits.py'

model = dict(backbone=dict(position=dict(type='vt.SeparatePosition', time=False)))
