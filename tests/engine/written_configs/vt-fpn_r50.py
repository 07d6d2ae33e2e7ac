# ResNet-50 with VT-FPN on any folder of images and masks, from ImageNet weights, with the tuned recipe:
# docs/training.md.
_base_ = 'vt-fpn_r18.py'

model = dict(
    backbone=dict(depth=50, init_cfg=dict(checkpoint='torchvision://resnet50')),
    neck=dict(in_channels=[256, 512, 1024, 2048]),
)
