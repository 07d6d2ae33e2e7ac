# VT-ResNet-18 for images of 32x32: as published, 16 tokens of 1024 channels, on a map of 8x8 pixels.
_base_ = 'vt-resnet18.py'

model = dict(backbone=dict(type='vt.VTResNetCIFAR'), head=dict(num_classes=10, topk=(1,)))
