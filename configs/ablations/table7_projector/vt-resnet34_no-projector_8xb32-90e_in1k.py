# Table 7 of the paper, VT-R34: tokens are not written back to the map.
# Paper: top-1 74.1. Not trained here yet.
_base_ = '../../vt_resnet/vt-resnet34_8xb32-90e_in1k.py'

model = dict(backbone=dict(projector=None))
