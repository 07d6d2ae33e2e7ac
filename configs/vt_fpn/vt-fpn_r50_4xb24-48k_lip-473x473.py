# ResNet-50 with VT-FPN on LIP, with the recipe of its FPN baseline. Paper: mIoU 47.39 (table 10). Not trained here yet.
# bash tools/dist_train.sh configs/vt_fpn/vt-fpn_r50_4xb24-48k_lip-473x473.py 4
_base_ = '../baselines/fpn_r50_4xb24-48k_lip-473x473.py'

model = dict(neck=dict(type='vt.VTFPN', num_tokens=8, token_channels=1024))
