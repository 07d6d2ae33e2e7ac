# Table 11: no positions.
# vt train table11_none_moving-digits
_base_ = '../mvit-tiny_moving-digits.py'

model = dict(backbone=dict(position=None))
