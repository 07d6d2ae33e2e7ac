# Table 15: average pooling with kernels of s+1.
# python tools/train.py configs/mvit/ablations/table15_average_moving-digits.py
_base_ = '../mvit-tiny_moving-digits.py'

model = dict(backbone=dict(pooling='average', kernel='s+1'))
