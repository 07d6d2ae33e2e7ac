# Table A.1: unnormalised skip connections where the number of channels changes.
# python tools/train.py configs/mvit/ablations/tableA1_raw_moving-digits.py
_base_ = '../mvit-tiny_moving-digits.py'

model = dict(backbone=dict(skip='raw'))
