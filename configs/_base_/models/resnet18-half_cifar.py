# ResNet-18 for images of 32x32 of half the width.
_base_ = 'resnet18_cifar.py'

model = dict(backbone=dict(stem_channels=32, base_channels=32), head=dict(in_channels=256))
