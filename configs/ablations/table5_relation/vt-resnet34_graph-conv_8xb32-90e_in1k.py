# Table 5 of the paper, VT-R34: a graph convolution with learned edges, equal for all images, as the relation.
# Paper: top-1 73.6. Not trained here yet.
# bash tools/dist_train.sh configs/ablations/table5_relation/vt-resnet34_graph-conv_8xb32-90e_in1k.py 8
_base_ = '../../vt_resnet/vt-resnet34_8xb32-90e_in1k.py'

model = dict(backbone=dict(relation=dict(type='vt.GraphConvolution')))
