# ResNet-18 at half width for images of 32x32: only the stem downsamples, so the map of stage 4 has 8x8 pixels.
_base_ = 'resnet18.py'

model = dict(
    backbone=dict(stem_channels=32, base_channels=32, strides=(1, 1, 1, 2)),
    head=dict(num_classes=10, in_channels=256, topk=(1,)),
)
