# Table 15: average pooling with kernels of s+1.
# vt train table15_average_moving-digits
_base_ = '../mvit-tiny_moving-digits.py'

model = dict(backbone=dict(pooling='average', kernel='s+1'))
