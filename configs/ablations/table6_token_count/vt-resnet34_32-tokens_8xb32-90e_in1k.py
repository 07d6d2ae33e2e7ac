# Table 6 of the paper, VT-R34: 32 tokens instead of 16.
# Paper: top-1 75.1. Not trained here yet.
# bash tools/dist_train.sh configs/ablations/table6_token_count/vt-resnet34_32-tokens_8xb32-90e_in1k.py 8
_base_ = '../../vt_resnet/vt-resnet34_8xb32-90e_in1k.py'

model = dict(backbone=dict(num_tokens=32))
