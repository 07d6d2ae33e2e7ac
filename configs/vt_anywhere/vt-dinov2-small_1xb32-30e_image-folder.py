# VT modules on the map of a frozen DINOv2-S/14, on any folder of images: docs/how-to/other-backbones.md.
# Not trained here yet.
# vt train vt-dinov2-small_1xb32-30e_image-folder
_base_ = ['../_base_/models/dinov2-small.py', '../_base_/recipes/fine_tune_image-folder.py']

model = dict(
    backbone=dict(
        type='vt.VTBackbone', backbone=_base_.architecture.backbone, in_channels=384, num_tokens=16, token_channels=384
    ),
    neck=dict(type='vt.TokenAverage'),
)
