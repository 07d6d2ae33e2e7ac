# ResNet-50 with VT-FPN on Cityscapes, with the recipe of its FPN baseline. Not trained here yet.
# bash tools/dist_train.sh configs/vt_fpn/vt-fpn_r50_4xb2-80k_cityscapes-512x1024.py 4
_base_ = '../baselines/fpn_r50_4xb2-80k_cityscapes-512x1024.py'

model = dict(neck=dict(type='vt.VTFPN', num_tokens=8, token_channels=1024))
