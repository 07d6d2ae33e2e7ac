# A small ConvNeXt (Liu et al., CVPR 2022) at the FLOPs of ResNet-18 at half width. Scores by rate and by number of
# images: ../README.md.
# PYTHONPATH=. python tools/train.py projects/relations/configs/convnext_2560-iters_svrt-1.py
_base_ = ['../../../configs/_base_/models/classifier.py', '_base_/sample-efficiency.py']

model = dict(
    backbone=dict(
        type='ConvNeXt',
        arch=dict(depths=[2, 2, 6, 2], channels=[56, 112, 224, 448]),
        layer_scale_init_value=0.0,  # none: from 1e-6 a block needs more epochs than there are to be heard
    ),
    head=dict(num_classes=2, in_channels=448),
)
