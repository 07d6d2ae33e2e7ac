# Table 5 of the paper, VT-R18: a graph convolution with learned edges, equal for all images, as the relation.
# Paper: top-1 69.2. Not trained here yet.
# bash tools/dist_train.sh configs/ablations/table5_relation/vt-resnet18_graph-conv_8xb32-90e_in1k.py 8
_base_ = '../../vt_resnet/vt-resnet18_8xb32-90e_in1k.py'

model = dict(backbone=dict(relation=dict(type='vt.GraphConvolution')))
