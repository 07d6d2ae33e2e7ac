# Table 14: keys and values pooled adaptively by 8x8.
# vt train table14_8_moving-digits
_base_ = '../mvit-tiny_moving-digits.py'

model = dict(backbone=dict(key_value_stride=8))
