# Table 15: max pooling with kernels of the stride s. Published: top-1 76.1 (77.2 for s+1).
# vt train table15_kernel-s_k400
_base_ = '../mvit-base-16x4-max_k400.py'

model = dict(backbone=dict(kernel='s'))
