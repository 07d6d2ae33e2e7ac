# Table A.3: keys and values of images pooled by 2, adaptively. Published: top-1 81.8 (82.5 by 4).
_base_ = '../mvit-base16-max_in1k.py'

model = dict(backbone=dict(key_value_stride=2))
