# LV-ViT-S (Jiang et al., NeurIPS 2021): a stem of convolutions, 16 blocks whose branches count half, and a second head,
# which has a label for each patch: every other image's patches lie on an image, and so do its labels.
relu = dict(out_channels=64, norm_cfg=dict(type='BN'))

system = dict(
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
    head=dict(type='vt.TokenLabelHead'),
)
