# Table 15: max pooling with kernels of s+1.
# python tools/train.py configs/mvit/ablations/table15_kernel-s+1_moving-digits.py
_base_ = '../mvit-tiny_moving-digits.py'

model = dict(backbone=dict(pooling='max', kernel='s+1'))
