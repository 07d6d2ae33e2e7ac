# Table 13: the same number of blocks, one more at the last scale and one fewer at the second.
# vt train table13_depths-1-1-3_moving-digits
_base_ = '../mvit-tiny_moving-digits.py'

model = dict(backbone=dict(arch=dict(depths=(1, 1, 3))))
