# Table 14: keys and values pooled by 2x2 in every stage.
# vt train table14_2-fixed_moving-digits
_base_ = '../mvit-tiny_moving-digits.py'

model = dict(backbone=dict(key_value_stride=2, adaptive=False))
