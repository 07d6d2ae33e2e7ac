# Table 15: average pooling. Published: top-1 75.4 (77.2 with max pooling).
# python tools/train.py configs/mvit/ablations/table15_average_k400.py
_base_ = '../mvit-base-16x4-max_k400.py'

model = dict(backbone=dict(pooling='average'))
