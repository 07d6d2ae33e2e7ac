# VT-ResNet-50: stage 5 of ResNet-50 replaced by three Visual Transformer modules (paper, section 4.1).
# Two groups in the token-side matrices bring it within the paper's FLOPs and parameters (table 8).
_base_ = 'resnet50.py'

model = dict(
    backbone=dict(type='vt.VTResNet', depth=50, num_tokens=16, token_channels=1024, groups=2),
    neck=dict(type='vt.TokenAverage'),
    head=dict(in_channels=1024),
)
