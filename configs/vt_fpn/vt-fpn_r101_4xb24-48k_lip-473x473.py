# ResNet-101 with VT-FPN on LIP, with the recipe of its FPN baseline. Paper: mIoU 47.58 (table 10). Not trained here
# yet.
# bash tools/dist_train.sh configs/vt_fpn/vt-fpn_r101_4xb24-48k_lip-473x473.py 4
_base_ = 'vt-fpn_r50_4xb24-48k_lip-473x473.py'

model = dict(backbone=dict(depth=101, init_cfg=dict(checkpoint='open-mmlab://detectron2/resnet101_caffe')))
