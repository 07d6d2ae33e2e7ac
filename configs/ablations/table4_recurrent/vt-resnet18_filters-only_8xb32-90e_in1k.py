# Table 4 of the paper, VT-R18: learned filters in all modules.
# Paper: top-1 71.4. Not trained here yet.
# bash tools/dist_train.sh configs/ablations/table4_recurrent/vt-resnet18_filters-only_8xb32-90e_in1k.py 8
_base_ = '../../vt_resnet/vt-resnet18_8xb32-90e_in1k.py'

model = dict(backbone=dict(later_tokenizer=dict(type='vt.FilterTokenizer')))
