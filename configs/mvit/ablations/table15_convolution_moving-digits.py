# Table 15: convolutions with kernels of s+1.
# python tools/train.py configs/mvit/ablations/table15_convolution_moving-digits.py
_base_ = '../mvit-tiny_moving-digits.py'

model = dict(backbone=dict(kernel='s+1'))
