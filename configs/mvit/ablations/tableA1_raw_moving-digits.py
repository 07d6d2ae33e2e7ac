# Table A.1: where channels grow, the skip takes what came.
_base_ = '../mvit-tiny_moving-digits.py'

model = dict(backbone=dict(skip='raw'))
