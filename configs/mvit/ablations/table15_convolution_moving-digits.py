# Table 15: convolutions with kernels of s+1.
# vt train table15_convolution_moving-digits
_base_ = '../mvit-tiny_moving-digits.py'

model = dict(backbone=dict(kernel='s+1'))
