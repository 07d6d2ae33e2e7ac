# ResNet-50 with VT-FPN on images and masks of a data set that Hugging Face's library `datasets` saved. load_from
# starts from a trained segmentor; without it the backbone starts from ImageNet weights.
# vt train vt-fpn_r50_1xb4-80k_hugging-face-512x512 data=<folder> weights=<checkpoint>
# Set classes of each data set in a config that inherits this one: docs/commands.md#your-own-data.
_base_ = [
    '../_base_/models/fpn_r50.py',
    '../_base_/datasets/hugging-face_512x512.py',
    '../_base_/schedules/sgd_poly-80k.py',
    '../_base_/segmentation_runtime.py',
]

model = dict(
    data_preprocessor=dict(size=(512, 512)),
    neck=dict(type='vt.VTFPN', num_tokens=8, token_channels=1024),
    decode_head=dict(num_classes='auto'),
)

# The recipe's 0.01 is for a batch of 16.
optim_wrapper = dict(optimizer=dict(lr=0.0025))
auto_scale_lr = dict(base_batch_size=4)
