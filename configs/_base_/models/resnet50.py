_base_ = 'resnet18.py'

model = dict(backbone=dict(depth=50), head=dict(in_channels=2048))
