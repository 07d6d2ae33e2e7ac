# Table 6 of the paper, VT-R34: twice as many tokens.
# Paper: top-1 75.1. Not trained here yet.
_base_ = '../../vt_resnet/vt-resnet34_8xb32-90e_in1k.py'

model = dict(backbone=dict(num_tokens=32))
