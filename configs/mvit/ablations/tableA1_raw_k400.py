# Table A.1: where channels grow, the skip takes what came. Published: top-1 74.6 (77.2 normalised).
_base_ = '../mvit-base-16x4-max_k400.py'

model = dict(backbone=dict(skip='raw'))
