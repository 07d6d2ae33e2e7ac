# A small MViT (Fan et al., ICCV 2021) at the FLOPs of ResNet-18 at half width. Scores by rate and by number of images:
# ../README.md.
# PYTHONPATH=. python tools/train.py projects/relations/configs/mvit_2560-iters_svrt-1.py
_base_ = ['../../../configs/_base_/models/classifier.py', '_base_/sample-efficiency.py']

model = dict(
    backbone=dict(
        type='vt.MViT',
        arch=dict(channels=48, depths=(1, 2, 6)),
        image_size=64,
        key_value_stride=4,
        class_tokens=0,
        out_type='average',
    ),
    head=dict(num_classes=2, in_channels=192),
)
