# Table 15: averages. Published: top-1 75.4 (77.2 with maxima).
_base_ = '../mvit-base-16x4-max_k400.py'

model = dict(backbone=dict(pooling='average'))
