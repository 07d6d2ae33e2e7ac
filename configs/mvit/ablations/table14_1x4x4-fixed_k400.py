# Table 14: keys and values pooled by 1x4x4 in every stage.
# vt train table14_1x4x4-fixed_k400
_base_ = '../mvit-base-16x4-max_k400.py'

model = dict(backbone=dict(key_value_stride=(1, 4, 4), adaptive=False))
