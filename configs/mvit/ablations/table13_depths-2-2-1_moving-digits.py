# Table 13: the same number of blocks, one more at the first scale and one fewer at the last.
# python tools/train.py configs/mvit/ablations/table13_depths-2-2-1_moving-digits.py
_base_ = '../mvit-tiny_moving-digits.py'

model = dict(backbone=dict(arch=dict(depths=(2, 2, 1))))
