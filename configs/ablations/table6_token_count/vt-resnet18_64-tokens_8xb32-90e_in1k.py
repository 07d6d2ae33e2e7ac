# Table 6 of the paper, VT-R18: four times as many tokens.
# Paper: top-1 72.0. Not trained here yet.
_base_ = '../../vt_resnet/vt-resnet18_8xb32-90e_in1k.py'

model = dict(backbone=dict(num_tokens=64))
