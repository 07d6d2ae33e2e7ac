# Table 11: no positions. Published: top-1 75.8 (77.2 with separate positions in space and time).
# vt train table11_none_k400
_base_ = '../mvit-base-16x4-max_k400.py'

model = dict(backbone=dict(position=None))
