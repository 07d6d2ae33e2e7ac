# ResNet-18 at half width for images of 32x32.
_base_ = 'resnet18_cifar.py'

model = dict(backbone=dict(stem_channels=32, base_channels=32), head=dict(in_channels=256))
