# ResNet-101 with VT-FPN on COCO-Stuff, with the recipe of its FPN baseline.
# Paper: mIoU 41.5 (table 9; 54 classes, here 171). Not trained here yet.
# bash tools/dist_train.sh configs/vt_fpn/vt-fpn_r101_4xb8-90k_coco-stuff164k-800x1216.py 4
_base_ = 'vt-fpn_r50_4xb8-90k_coco-stuff164k-800x1216.py'

model = dict(backbone=dict(depth=101, init_cfg=dict(checkpoint='open-mmlab://detectron2/resnet101_caffe')))
