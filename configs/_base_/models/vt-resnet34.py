# VT-ResNet-34: stage 5 of ResNet-34 replaced by three Visual Transformer modules (paper, section 4.1).
_base_ = 'resnet34.py'

model = dict(
    backbone=dict(type='vt.VTResNet', depth=34, num_tokens=16, token_channels=1024),
    neck=dict(type='vt.TokenAverage'),
    head=dict(in_channels=1024),
)
