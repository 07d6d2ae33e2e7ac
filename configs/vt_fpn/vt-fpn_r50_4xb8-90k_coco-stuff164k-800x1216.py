# ResNet-50 with VT-FPN on COCO-Stuff, with the recipe of its FPN baseline.
# Paper: mIoU 41.0 (table 9; 54 classes, here 171). Not trained here yet.
# bash tools/dist_train.sh configs/vt_fpn/vt-fpn_r50_4xb8-90k_coco-stuff164k-800x1216.py 4
_base_ = '../baselines/fpn_r50_4xb8-90k_coco-stuff164k-800x1216.py'

model = dict(neck=dict(type='vt.VTFPN', num_tokens=8, token_channels=1024))
