# Table 11: positions in space alone. Published: top-1 76.7 (77.2 with space and time apart).
_base_ = '../mvit-base-16x4-max_k400.py'

model = dict(backbone=dict(position=dict(type='vt.SeparatePosition', time=False)))
