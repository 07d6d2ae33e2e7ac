# Table 15: average pooling. Published: top-1 75.4 (77.2 with max pooling).
# vt train table15_average_k400
_base_ = '../mvit-base-16x4-max_k400.py'

model = dict(backbone=dict(pooling='average'))
