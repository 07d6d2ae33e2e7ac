# A linear layer on the map of a frozen DINOv3-S/16, on any folder of images and masks: docs/how-to/other-backbones.md.
# Not trained here yet.
# vt train linear_dinov3-small_1xb4-20k_images-and-masks-512x512 data=<folder>
_base_ = [
    '../_base_/models/dinov3-small.py',
    '../_base_/parts/linear-segmentor_384.py',
    '../_base_/datasets/images-and-masks_512x512.py',
    '../_base_/recipes/tuned_bs4-20k.py',
    '../_base_/segmentation_runtime.py',
]

model = dict(
    data_preprocessor=dict(test_cfg=dict(size_divisor=16)),  # pads images to whole patches
    backbone=_base_.architecture.backbone,
)
optim_wrapper = dict(optimizer=dict(lr=1e-3), paramwise_cfg=dict(_delete_=True))
