# The same with torchvision's ResNet-50.
_base_ = 'vt-fpn_r18.py'

model = dict(
    backbone=dict(depth=50, init_cfg=dict(checkpoint='torchvision://resnet50')),
    neck=dict(in_channels=[256, 512, 1024, 2048]),
)
