# A linear layer on the map of a frozen DINOv2-S/14, on any folder of images and masks: docs/how-to/other-backbones.md.
# Not trained here yet.
# python tools/train.py configs/baselines/linear_dinov2-small_1xb4-20k_images-and-masks-518x518.py \
#     --cfg-options data_root=<folder>
_base_ = [
    '../_base_/models/dinov2-small.py',
    '../_base_/datasets/images-and-masks_512x512.py',
    '../_base_/recipes/tuned_bs4-20k.py',
    '../_base_/segmentation_runtime.py',
]

image_size = 518  # 37 patches a side
model = dict(
    type='EncoderDecoder',
    data_preprocessor=dict(
        type='SegDataPreProcessor',
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        bgr_to_rgb=True,
        size=(512, 512),
        seg_pad_val=255,
        test_cfg=dict(size_divisor=14),  # pads images to whole patches
    ),
    backbone=_base_.architecture.backbone,
    decode_head=dict(
        type='FCNHead',
        in_channels=384,
        channels=384,
        num_convs=0,
        concat_input=False,
        num_classes='auto',
        loss_decode=dict(type='CrossEntropyLoss', avg_non_ignore=True),
    ),
    train_cfg=dict(),
    test_cfg=dict(mode='whole'),
)
optim_wrapper = dict(optimizer=dict(lr=1e-3), paramwise_cfg=dict(_delete_=True))
