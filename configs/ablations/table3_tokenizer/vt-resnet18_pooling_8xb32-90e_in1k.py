# Table 3 of the paper, VT-R18: the cells of a grid as the first module's tokens.
# Paper: top-1 70.6. Not trained here yet.
_base_ = '../../vt_resnet/vt-resnet18_8xb32-90e_in1k.py'

model = dict(backbone=dict(tokenizer=dict(type='vt.PoolingTokenizer')))
