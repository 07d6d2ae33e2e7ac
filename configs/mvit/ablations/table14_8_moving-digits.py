# Table 14: keys and values pooled by 8x8, adaptively.
_base_ = '../mvit-tiny_moving-digits.py'

model = dict(backbone=dict(key_value_stride=8))
