# Table 14: keys and values pooled adaptively by 2x4x4.
# vt train table14_2x4x4_k400
_base_ = '../mvit-base-16x4-max_k400.py'

model = dict(backbone=dict(key_value_stride=(2, 4, 4)))
