# Table 6 of the paper, VT-R18: twice as many tokens.
# Paper: top-1 71.7. Not trained here yet.
_base_ = '../../vt_resnet/vt-resnet18_8xb32-90e_in1k.py'

model = dict(backbone=dict(num_tokens=32))
