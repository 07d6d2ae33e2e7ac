# Table 14: keys and values pooled adaptively by 8x8.
# python tools/train.py configs/mvit/ablations/table14_8_moving-digits.py
_base_ = '../mvit-tiny_moving-digits.py'

model = dict(backbone=dict(key_value_stride=8))
