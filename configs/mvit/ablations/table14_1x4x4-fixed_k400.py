# Table 14: keys and values pooled by 1x4x4 in every stage.
_base_ = '../mvit-base-16x4-max_k400.py'

model = dict(backbone=dict(key_value_stride=(1, 4, 4), adaptive=False))
