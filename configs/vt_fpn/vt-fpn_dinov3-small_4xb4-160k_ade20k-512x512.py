# VT-FPN on a pyramid of a frozen DINOv3-S/16's map, on ADE20K: docs/how-to/other-backbones.md. Not trained here yet.
# bash tools/dist_train.sh configs/vt_fpn/vt-fpn_dinov3-small_4xb4-160k_ade20k-512x512.py 4
_base_ = [
    '../_base_/models/dinov3-small.py',
    '../_base_/parts/vt-fpn-pyramid_384.py',
    '../baselines/fpn_r50_4xb4-160k_ade20k-512x512.py',
]

model = dict(
    data_preprocessor=dict(test_cfg=dict(size_divisor=16)),  # pads images to whole patches
    backbone=dict(_delete_=True, **_base_.architecture.backbone),
    neck=_base_.pyramid,
)
