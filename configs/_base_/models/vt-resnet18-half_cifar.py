# VT-ResNet-18 for images of 32x32 of half the width, including the tokens.
_base_ = 'vt-resnet18_cifar.py'

model = dict(
    backbone=dict(stem_channels=32, base_channels=32, token_channels=512),
    head=dict(in_channels=512),
)
