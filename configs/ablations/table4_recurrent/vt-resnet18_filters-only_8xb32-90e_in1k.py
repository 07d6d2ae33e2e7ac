# Table 4 of the paper, VT-R18: learned filters in the later modules too.
# Paper: top-1 71.4. Not trained here yet.
_base_ = '../../vt_resnet/vt-resnet18_8xb32-90e_in1k.py'

model = dict(backbone=dict(later_tokenizer=dict(type='vt.FilterTokenizer')))
