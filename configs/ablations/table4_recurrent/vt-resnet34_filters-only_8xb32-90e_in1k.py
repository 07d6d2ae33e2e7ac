# Table 4 of the paper, VT-R34: learned filters in the later modules too.
# Paper: top-1 74.5. Not trained here yet.
_base_ = '../../vt_resnet/vt-resnet34_8xb32-90e_in1k.py'

model = dict(backbone=dict(later_tokenizer=dict(type='vt.FilterTokenizer')))
