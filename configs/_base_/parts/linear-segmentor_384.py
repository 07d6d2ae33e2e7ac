# A linear layer on a map of 384 channels, such as that of a ViT-S.
model = dict(
    type='EncoderDecoder',
    data_preprocessor=dict(
        type='SegDataPreProcessor',
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        bgr_to_rgb=True,
        size=(512, 512),
        seg_pad_val=255,
    ),
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
