# Table 13: the same number of blocks, one more at the first scale and one fewer at the last.
# vt train table13_depths-2-2-1_moving-digits
_base_ = '../mvit-tiny_moving-digits.py'

model = dict(backbone=dict(arch=dict(depths=(2, 2, 1))))
