# Table 5 of the paper, VT-R18: no relation between tokens.
# Paper: top-1 68.8. Not trained here yet.
# bash tools/dist_train.sh configs/ablations/table5_relation/vt-resnet18_no-relation_8xb32-90e_in1k.py 8
_base_ = '../../vt_resnet/vt-resnet18_8xb32-90e_in1k.py'

model = dict(backbone=dict(relation=None))
