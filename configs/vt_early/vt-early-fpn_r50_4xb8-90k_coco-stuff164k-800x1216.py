# ResNet-50 with VT-FPN of the paper's first version (arXiv 2006.03677v1) on COCO-Stuff, with the recipe of its FPN
# baseline.
# Not trained here yet.
# bash tools/dist_train.sh configs/vt_early/vt-early-fpn_r50_4xb8-90k_coco-stuff164k-800x1216.py 4
_base_ = ['../vt_fpn/vt-fpn_r50_4xb8-90k_coco-stuff164k-800x1216.py', '../_base_/models/vt-early.py']

model = dict(neck=_base_.early_neck)
