# Table 5 of the paper: a graph convolution with learned edges, equal for all images, as the relation. Scores:
# docs/ablations.md.
# python tools/train.py configs/ablations/table5_relation/vt-resnet18-half_graph-conv_twin-digits.py
_base_ = '../../vt_resnet/vt-resnet18-half_twin-digits.py'

model = dict(backbone=dict(relation=dict(type='vt.GraphConvolution')))
