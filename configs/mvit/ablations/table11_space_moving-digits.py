# Table 11: positions only in space.
# python tools/train.py configs/mvit/ablations/table11_space_moving-digits.py
_base_ = '../mvit-tiny_moving-digits.py'

model = dict(backbone=dict(position=dict(type='vt.SeparatePosition', time=False)))
