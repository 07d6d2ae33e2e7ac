# Table 11: positions only in space. Published: top-1 76.7 (77.2 with separate positions in space and time).
# vt train table11_space_k400
_base_ = '../mvit-base-16x4-max_k400.py'

model = dict(backbone=dict(position=dict(type='vt.SeparatePosition', time=False)))
