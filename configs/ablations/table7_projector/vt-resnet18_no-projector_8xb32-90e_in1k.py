# Table 7 of the paper, VT-R18: tokens are not written back to the map.
# Paper: top-1 70.9. Not trained here yet.
_base_ = '../../vt_resnet/vt-resnet18_8xb32-90e_in1k.py'

model = dict(backbone=dict(projector=None))
