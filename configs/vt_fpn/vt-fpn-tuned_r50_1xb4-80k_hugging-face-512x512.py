# ResNet-50 with VT-FPN on images and masks of a data set that Hugging Face's library `datasets` saved, from
# ImageNet weights, with the tuned recipe: docs/training.md.
# vt train vt-fpn-tuned_r50_1xb4-80k_hugging-face-512x512 data=<folder>
# Set classes of each data set in a config that inherits this one: docs/commands.md#your-own-data.
_base_ = [
    '../_base_/models/fpn_r50.py',
    '../_base_/datasets/hugging-face_512x512.py',
    '../_base_/recipes/tuned_bs4-20k.py',
    '../_base_/segmentation_runtime.py',
]

model = dict(
    data_preprocessor=dict(size=(512, 512)),
    neck=dict(type='vt.VTFPN', num_tokens=8, token_channels=1024),
    decode_head=dict(num_classes='auto'),
)
train_cfg = dict(max_iters=80000, val_interval=8000)
