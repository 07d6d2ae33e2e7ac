# Table 3 of the paper, VT-R34: the cells of a grid as the first module's tokens.
# Paper: top-1 73.5. Not trained here yet.
_base_ = '../../vt_resnet/vt-resnet34_8xb32-90e_in1k.py'

model = dict(backbone=dict(tokenizer=dict(type='vt.PoolingTokenizer')))
