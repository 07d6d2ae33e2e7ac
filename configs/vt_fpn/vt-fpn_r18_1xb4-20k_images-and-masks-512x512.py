# ResNet-18 with VT-FPN on any folder of images and masks, from ImageNet weights.
# vt train vt-fpn_r18_1xb4-20k_images-and-masks-512x512 data=<folder>
_base_ = [
    '../_base_/models/fpn_r18.py',
    '../_base_/datasets/images-and-masks_512x512.py',
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
train_cfg = dict(max_iters=20000, val_interval=2000)
default_hooks = dict(checkpoint=dict(interval=2000))
