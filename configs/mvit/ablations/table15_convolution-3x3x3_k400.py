# Table 15: convolutions with kernels of 3x3x3, the published model. Published: top-1 78.4 (77.2 with max pooling).
# vt train table15_convolution-3x3x3_k400
_base_ = '../mvit-base-16x4-max_k400.py'

model = dict(backbone=dict(pooling='convolution', kernel=3))
