# ResNet-18 at half width. Scores by rate and by number of images: ../README.md.
# PYTHONPATH=. python tools/train.py projects/relations/configs/resnet18-half_2560-iters_svrt-1.py
_base_ = [
    '../../../configs/_base_/models/resnet18-half.py',
    '_base_/sample-efficiency.py',
]

model = dict(backbone=dict(strides=(1, 2, 1, 2)), head=dict(num_classes=2))  # a map of 8x8 pixels
