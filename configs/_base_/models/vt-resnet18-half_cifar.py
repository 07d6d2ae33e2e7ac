# VT-ResNet-18 at half width for images of 32x32, including the tokens.
_base_ = 'vt-resnet18_cifar.py'

model = dict(
    backbone=dict(stem_channels=32, base_channels=32, token_channels=512),
    head=dict(in_channels=512),
)
