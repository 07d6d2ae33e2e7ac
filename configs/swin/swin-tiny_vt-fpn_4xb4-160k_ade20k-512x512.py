# Swin-T with VT-FPN on ADE20K, with the recipe of its ResNet-50 baseline and AdamW. Not trained here yet.
# bash tools/dist_train.sh configs/swin/swin-tiny_vt-fpn_4xb4-160k_ade20k-512x512.py 4
_base_ = ['../vt_fpn/vt-fpn_r50_4xb4-160k_ade20k-512x512.py', '../_base_/models/swin-tiny.py']

backbone = _base_.architecture.backbone
backbone |= dict(_delete_=True, out_type='map', out_indices=(0, 1, 2, 3), norm_outputs=True)
model = dict(backbone=backbone, neck=dict(in_channels=[96, 192, 384, 768]))

optim_wrapper = dict(optimizer=dict(_delete_=True, type='AdamW', lr=1e-4, weight_decay=0.05))
