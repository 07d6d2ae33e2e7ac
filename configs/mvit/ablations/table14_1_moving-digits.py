# Table 14: keys and values are not pooled.
# vt train table14_1_moving-digits
_base_ = '../mvit-tiny_moving-digits.py'

model = dict(backbone=dict(key_value_stride=1))
