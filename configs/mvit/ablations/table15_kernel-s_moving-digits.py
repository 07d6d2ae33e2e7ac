# Table 15: max pooling with kernels of the stride s.
# vt train table15_kernel-s_moving-digits
_base_ = '../mvit-tiny_moving-digits.py'

model = dict(backbone=dict(pooling='max', kernel='s'))
