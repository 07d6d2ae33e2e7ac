# Table 15: convolutions with kernels of s+1. Published: top-1 78.3 (77.2 with max pooling).
# vt train table15_convolution_k400
_base_ = '../mvit-base-16x4-max_k400.py'

model = dict(backbone=dict(pooling='convolution'))
