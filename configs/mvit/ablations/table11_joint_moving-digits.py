# Table 11: joint positions in space and time.
# python tools/train.py configs/mvit/ablations/table11_joint_moving-digits.py
_base_ = '../mvit-tiny_moving-digits.py'

model = dict(backbone=dict(position=dict(type='vt.AbsolutePosition')))
