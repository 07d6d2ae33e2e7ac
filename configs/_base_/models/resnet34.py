_base_ = 'resnet18.py'

model = dict(backbone=dict(depth=34))
