# Full token-side matrices, above the paper's FLOPs and parameters.
# bash tools/dist_train.sh configs/vt_resnet/vt-resnet101-ungrouped_8xb32-90e_in1k.py 8
_base_ = 'vt-resnet101_8xb32-90e_in1k.py'

model = dict(backbone=dict(groups=1))
