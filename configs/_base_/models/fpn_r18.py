# The same with torchvision's ResNet-18.
_base_ = 'fpn_r50.py'

model = dict(
    backbone=dict(type='ResNet', depth=18, init_cfg=dict(checkpoint='torchvision://resnet18')),
    neck=dict(in_channels=[64, 128, 256, 512]),
)
