# LV-ViT-S (Jiang et al., NeurIPS 2021): a convolutional stem, 16 blocks whose branches are halved, MixToken, and labels
# for the patches, from MMPretrain's ResNet-50.
relu = dict(out_channels=64, norm_cfg=dict(type='BN'))

architecture = dict(
    type='vt.TokenLabelClassifier',
    teacher=dict(
        type='ImageClassifier',
        backbone=dict(type='ResNet', depth=50),
        neck=dict(type='GlobalAveragePooling'),
        head=dict(type='LinearClsHead', num_classes=1000, in_channels=2048),
    ),
    teacher_checkpoint='resnet50_8xb32_in1k.pth',
    train_cfg=None,  # without Mixup and CutMix
    backbone=dict(
        type='vt.TokenBackbone',
        out_type='tokens',
        drop_path_rate=0.1,
        stages=[
            dict(
                channels=384,
                num_heads=6,
                depth=16,
                gain=0.5,
                embed=dict(
                    type='vt.ConvolutionalEmbed',
                    layers=[
                        dict(kernel_size=7, stride=2, **relu),
                        dict(kernel_size=3, **relu),
                        dict(kernel_size=3, **relu),
                    ],
                    patch=dict(kernel_size=8),
                ),
                class_tokens=1,
                position=dict(type='vt.AbsolutePosition'),
                attention=dict(qkv_bias=False),
                feed_forward=dict(ratio=3),
                norm_cfg=dict(type='LN'),
                norm=True,
            ),
        ],
    ),
    head=dict(type='vt.TokenLabelHead', loss=dict(_delete_=True, type='CrossEntropyLoss')),
)
