# Table 15: maxima of windows of 2s+1. Published: top-1 75.5 (77.2 for s+1).
_base_ = '../mvit-base-16x4-max_k400.py'

model = dict(backbone=dict(kernel='2s+1'))
