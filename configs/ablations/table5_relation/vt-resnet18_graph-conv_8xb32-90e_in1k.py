# Table 5 of the paper, VT-R18: learned edges relate the tokens, the same for every image.
# Paper: top-1 69.2. Not trained here yet.
_base_ = '../../vt_resnet/vt-resnet18_8xb32-90e_in1k.py'

model = dict(backbone=dict(relation=dict(type='vt.GraphConvolution')))
