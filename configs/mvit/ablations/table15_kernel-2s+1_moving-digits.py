# Table 15: max pooling with kernels of 2s+1.
# vt train table15_kernel-2s+1_moving-digits
_base_ = '../mvit-tiny_moving-digits.py'

model = dict(backbone=dict(pooling='max', kernel='2s+1'))
