# VT-ResNet-18 at half width for images of 32x32: 16 tokens of 512 channels on a map of 8x8 pixels.
_base_ = 'resnet18-half.py'

model = dict(
    backbone=dict(type='vt.VTResNet', depth=18, strides=(1, 1, 1), num_tokens=16, token_channels=512),
    neck=dict(type='vt.TokenAverage'),
    head=dict(in_channels=512),
)
