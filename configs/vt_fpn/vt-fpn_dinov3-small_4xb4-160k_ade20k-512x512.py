# VT-FPN on a pyramid of a frozen DINOv3-S/16's map, on ADE20K: docs/how-to/other-backbones.md. Not trained here yet.
# bash tools/dist_train.sh configs/vt_fpn/vt-fpn_dinov3-small_4xb4-160k_ade20k-512x512.py 4
_base_ = ['../_base_/models/dinov3-small.py', '../baselines/fpn_r50_4xb4-160k_ade20k-512x512.py']

model = dict(
    data_preprocessor=dict(test_cfg=dict(size_divisor=16)),  # pads images to whole patches
    backbone=dict(_delete_=True, **_base_.architecture.backbone),
    neck=[
        dict(type='vt.SimplePyramid', in_channels=384),
        dict(type='vt.VTFPN', in_channels=[96, 192, 384, 384], num_tokens=8, token_channels=1024),
    ],
)
