# Table 14: keys and values pooled by 2x4x4 in every stage. Published: top-1 74.8 (77.2 adaptively by 1x8x8).
# vt train table14_2x4x4-fixed_k400
_base_ = '../mvit-base-16x4-max_k400.py'

model = dict(backbone=dict(key_value_stride=(2, 4, 4), adaptive=False))
