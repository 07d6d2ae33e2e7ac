# Table 3 of the paper, VT-R18: the first module's filters are the image's own k-means centres.
# Paper: top-1 71.5. Not trained here yet.
_base_ = '../../vt_resnet/vt-resnet18_8xb32-90e_in1k.py'

model = dict(backbone=dict(tokenizer=dict(type='vt.ClusteringTokenizer')))
