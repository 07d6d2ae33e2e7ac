# ResNet-101 with VT-FPN on ADE20K, with the recipe of its FPN baseline. Not trained here yet.
# bash tools/dist_train.sh configs/vt_fpn/vt-fpn_r101_4xb4-160k_ade20k-512x512.py 4
_base_ = 'vt-fpn_r50_4xb4-160k_ade20k-512x512.py'

model = dict(backbone=dict(depth=101, init_cfg=dict(checkpoint='open-mmlab://resnet101_v1c')))
