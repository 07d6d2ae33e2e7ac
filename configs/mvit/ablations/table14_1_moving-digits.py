# Table 14: keys and values are not pooled.
_base_ = '../mvit-tiny_moving-digits.py'

model = dict(backbone=dict(key_value_stride=1))
