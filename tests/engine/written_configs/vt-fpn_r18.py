# ResNet-18 with VT-FPN on any folder of images and masks, from ImageNet weights, with the tuned recipe:
# docs/training.md.
_base_ = [
    '../../../configs/_base_/models/fpn_r18.py',
    '../../../configs/_base_/datasets/images-and-masks_512x512.py',
    '../../../configs/_base_/recipes/tuned_bs4-20k.py',
    '../../../configs/_base_/segmentation_runtime.py',
]

model = dict(
    data_preprocessor=dict(size=(512, 512)),
    neck=dict(type='vt.VTFPN', num_tokens=8, token_channels=1024),
    decode_head=dict(num_classes='auto'),
)
default_hooks = dict(checkpoint=dict(interval=2000))
