# Table A.1: unnormalised skip connections where the number of channels changes.
# vt train tableA1_raw_moving-digits
_base_ = '../mvit-tiny_moving-digits.py'

model = dict(backbone=dict(skip='raw'))
