# Table 5 of the paper, VT-R18: nothing relates the tokens.
# Paper: top-1 68.8. Not trained here yet.
_base_ = '../../vt_resnet/vt-resnet18_8xb32-90e_in1k.py'

model = dict(backbone=dict(relation=None))
