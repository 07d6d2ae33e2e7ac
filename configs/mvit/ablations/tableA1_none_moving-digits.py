# Table A.1: no skip connections where the number of channels changes.
# vt train tableA1_none_moving-digits
_base_ = '../mvit-tiny_moving-digits.py'

model = dict(backbone=dict(skip='none'))
