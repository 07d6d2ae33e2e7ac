# Table 14: keys and values pooled adaptively by 2x8x8.
# vt train table14_2x8x8_k400
_base_ = '../mvit-base-16x4-max_k400.py'

model = dict(backbone=dict(key_value_stride=(2, 8, 8)))
