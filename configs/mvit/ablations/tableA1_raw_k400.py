# Table A.1: unnormalised skip connections where the number of channels changes. Published: top-1 74.6 (77.2 with
# normalised ones).
# vt train tableA1_raw_k400
_base_ = '../mvit-base-16x4-max_k400.py'

model = dict(backbone=dict(skip='raw'))
