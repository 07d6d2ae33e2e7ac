# Table A.3: keys and values pooled adaptively by 1, on images. Published: top-1 82.3 (82.5 by 4).
# vt train tableA3_stride-1_in1k
_base_ = '../mvit-base16-max_in1k.py'

model = dict(backbone=dict(key_value_stride=1))
