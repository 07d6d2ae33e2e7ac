# Table 11: joint positions in space and time. Published: 38.6 M, top-1 76.5 (77.2 with separate positions in space and
# time).
# vt train table11_joint_k400
_base_ = '../mvit-base-16x4-max_k400.py'

model = dict(backbone=dict(position=dict(type='vt.AbsolutePosition')))
