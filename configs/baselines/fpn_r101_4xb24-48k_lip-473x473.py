# ResNet-101 with FPN on LIP. Paper: mIoU 47.35 (table 10). Not trained here yet.
# bash tools/dist_train.sh configs/baselines/fpn_r101_4xb24-48k_lip-473x473.py 4
_base_ = 'fpn_r50_4xb24-48k_lip-473x473.py'

model = dict(backbone=dict(depth=101, init_cfg=dict(checkpoint='open-mmlab://detectron2/resnet101_caffe')))
