# Table 5 of the paper, VT-R34: nothing relates the tokens.
# Paper: top-1 73.4. Not trained here yet.
_base_ = '../../vt_resnet/vt-resnet34_8xb32-90e_in1k.py'

model = dict(backbone=dict(relation=None))
