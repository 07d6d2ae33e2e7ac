# MViT-B, 16x4, with max pooling instead of convolutions: the model of the paper's ablations. Published: top-1 77.2.
# vt train mvit-base-16x4-max_k400
_base_ = 'mvit-base-16x4_k400.py'

model = dict(backbone=dict(pooling='max', kernel='s+1'))
