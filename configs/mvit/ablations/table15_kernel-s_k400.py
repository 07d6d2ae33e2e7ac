# Table 15: maxima of windows as long as their stride. Published: top-1 76.1 (77.2 for s+1).
_base_ = '../mvit-base-16x4-max_k400.py'

model = dict(backbone=dict(kernel='s'))
