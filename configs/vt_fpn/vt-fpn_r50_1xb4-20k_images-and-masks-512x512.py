# ResNet-50 with VT-FPN on any folder of images and masks, from ImageNet weights.
# vt train vt-fpn_r50_1xb4-20k_images-and-masks-512x512 data=<folder>
_base_ = 'vt-fpn_r18_1xb4-20k_images-and-masks-512x512.py'

model = dict(
    backbone=dict(depth=50, init_cfg=dict(checkpoint='torchvision://resnet50')),
    neck=dict(in_channels=[256, 512, 1024, 2048]),
)
