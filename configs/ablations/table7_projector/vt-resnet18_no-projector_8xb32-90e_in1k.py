# Table 7 of the paper, VT-R18: no projector: tokens are not added to the map.
# Paper: top-1 70.9. Not trained here yet.
# bash tools/dist_train.sh configs/ablations/table7_projector/vt-resnet18_no-projector_8xb32-90e_in1k.py 8
_base_ = '../../vt_resnet/vt-resnet18_8xb32-90e_in1k.py'

model = dict(backbone=dict(projector=None))
