# ResNet-50 with VT-FPN on ADE20K, with the recipe of its FPN baseline. Not trained here yet.
# bash tools/dist_train.sh configs/vt_fpn/vt-fpn_r50_4xb4-160k_ade20k-512x512.py 4
_base_ = '../baselines/fpn_r50_4xb4-160k_ade20k-512x512.py'

model = dict(neck=dict(type='vt.VTFPN', num_tokens=8, token_channels=1024))
