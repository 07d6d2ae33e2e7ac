# Table 13: as many blocks, one more of them at the first scale and one fewer at the last.
_base_ = '../mvit-tiny_moving-digits.py'

model = dict(backbone=dict(arch=dict(depths=(2, 2, 1))))
