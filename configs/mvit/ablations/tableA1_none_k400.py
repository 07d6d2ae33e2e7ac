# Table A.1: where channels grow, nothing passes by. Published: top-1 74.7 (77.2 normalised).
_base_ = '../mvit-base-16x4-max_k400.py'

model = dict(backbone=dict(skip='none'))
