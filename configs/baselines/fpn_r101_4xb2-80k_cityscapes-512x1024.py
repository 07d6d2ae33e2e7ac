# ResNet-101 with FPN on Cityscapes. Not trained here yet.
# bash tools/dist_train.sh configs/baselines/fpn_r101_4xb2-80k_cityscapes-512x1024.py 4
_base_ = 'fpn_r50_4xb2-80k_cityscapes-512x1024.py'

model = dict(backbone=dict(depth=101, init_cfg=dict(checkpoint='open-mmlab://resnet101_v1c')))
