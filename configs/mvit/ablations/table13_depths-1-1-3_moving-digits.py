# Table 13: as many blocks, one more of them at the last scale and one fewer at the second.
_base_ = '../mvit-tiny_moving-digits.py'

model = dict(backbone=dict(arch=dict(depths=(1, 1, 3))))
