# Table 3 of the paper, VT-R18: the map, resized to a grid, as tokens of the first module.
# Paper: top-1 70.6. Not trained here yet.
# bash tools/dist_train.sh configs/ablations/table3_tokenizer/vt-resnet18_pooling_8xb32-90e_in1k.py 8
_base_ = '../../vt_resnet/vt-resnet18_8xb32-90e_in1k.py'

model = dict(backbone=dict(tokenizer=dict(type='vt.PoolingTokenizer')))
