# Table A.3: keys and values of images pooled by 1, adaptively. Published: top-1 82.3 (82.5 by 4).
_base_ = '../mvit-base16-max_in1k.py'

model = dict(backbone=dict(key_value_stride=1))
