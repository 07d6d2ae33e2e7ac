# Table A.1: where channels grow, nothing passes by.
_base_ = '../mvit-tiny_moving-digits.py'

model = dict(backbone=dict(skip='none'))
