# Table 5 of the paper: a graph convolution with learned edges, equal for all images, as the relation. Scores:
# ../ablations.md.
# PYTHONPATH=. python tools/train.py projects/relations/configs/vt-resnet18-half_graph-conv_twin-digits.py
_base_ = 'vt-resnet18-half_twin-digits.py'

model = dict(backbone=dict(relation=dict(type='vt.GraphConvolution')))
