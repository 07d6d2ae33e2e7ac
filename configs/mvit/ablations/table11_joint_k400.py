# Table 11: a position for each place of each frame. Published: 38.6 M, top-1 76.5 (77.2 with space and time apart).
_base_ = '../mvit-base-16x4-max_k400.py'

model = dict(backbone=dict(position=dict(type='vt.AbsolutePosition')))
