# Table A.1: no skip connections where the number of channels changes.
# python tools/train.py configs/mvit/ablations/tableA1_none_moving-digits.py
_base_ = '../mvit-tiny_moving-digits.py'

model = dict(backbone=dict(skip='none'))
