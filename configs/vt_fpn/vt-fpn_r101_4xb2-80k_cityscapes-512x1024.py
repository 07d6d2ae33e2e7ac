# ResNet-101 with VT-FPN on Cityscapes, with the recipe of its FPN baseline. Not trained here yet.
# bash tools/dist_train.sh configs/vt_fpn/vt-fpn_r101_4xb2-80k_cityscapes-512x1024.py 4
_base_ = 'vt-fpn_r50_4xb2-80k_cityscapes-512x1024.py'

model = dict(backbone=dict(depth=101, init_cfg=dict(checkpoint='open-mmlab://resnet101_v1c')))
