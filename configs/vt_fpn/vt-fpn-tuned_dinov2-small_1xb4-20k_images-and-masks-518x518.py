# VT-FPN on a pyramid of a frozen DINOv2-S/14's map, on any folder of images and masks: docs/how-to/other-backbones.md.
# Not trained here yet.
# vt train vt-fpn-tuned_dinov2-small_1xb4-20k_images-and-masks-518x518 data=<folder>
_base_ = [
    '../_base_/models/dinov2-small.py',
    '../_base_/parts/vt-fpn-pyramid_384.py',
    '../_base_/models/fpn_r18.py',
    '../_base_/recipes/vt-fpn_images-and-masks.py',
]

image_size = 518  # 37 patches a side
model = dict(
    data_preprocessor=dict(size=(512, 512), test_cfg=dict(size_divisor=14)),  # pads images to whole patches
    backbone=dict(_delete_=True, **_base_.architecture.backbone),
    neck=_base_.pyramid,
    decode_head=dict(num_classes='auto'),
)
optim_wrapper = dict(paramwise_cfg=dict(_delete_=True, **_base_.tuned))  # the backbone is frozen
