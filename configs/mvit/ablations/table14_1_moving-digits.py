# Table 14: keys and values are not pooled.
# python tools/train.py configs/mvit/ablations/table14_1_moving-digits.py
_base_ = '../mvit-tiny_moving-digits.py'

model = dict(backbone=dict(key_value_stride=1))
