_base_ = 'resnet50.py'

model = dict(backbone=dict(depth=101))
