# Table 15: max pooling with kernels of 2s+1. Published: top-1 75.5 (77.2 for s+1).
# vt train table15_kernel-2s+1_k400
_base_ = '../mvit-base-16x4-max_k400.py'

model = dict(backbone=dict(kernel='2s+1'))
