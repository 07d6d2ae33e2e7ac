# Table 14: keys and values pooled by 2x4x4, adaptively.
_base_ = '../mvit-base-16x4-max_k400.py'

model = dict(backbone=dict(key_value_stride=(2, 4, 4)))
