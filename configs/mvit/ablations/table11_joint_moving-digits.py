# Table 11: joint positions in space and time.
# vt train table11_joint_moving-digits
_base_ = '../mvit-tiny_moving-digits.py'

model = dict(backbone=dict(position=dict(type='vt.AbsolutePosition')))
