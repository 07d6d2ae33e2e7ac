# VT-ResNet-18: stage 5 of ResNet-18 replaced by two Visual Transformer modules (paper, section 4.1).
_base_ = 'resnet18.py'

model = dict(
    backbone=dict(type='vt.VTResNet', depth=18, num_tokens=16, token_channels=1024),
    neck=dict(type='vt.TokenAverage'),
    head=dict(in_channels=1024),
)
