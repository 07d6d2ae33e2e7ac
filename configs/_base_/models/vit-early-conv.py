# Early convolutions (Xiao et al., NeurIPS 2021), ViT_C-4GF: four 3x3 convolutions of stride 2 and a 1x1 in the place of
# the patches and of one block; three times the channels in the feed-forward.
relu = dict(kernel_size=3, stride=2, norm_cfg=dict(type='BN'))

architecture = dict(
    backbone=dict(
        type='vt.TokenBackbone',
        out_type='class_tokens',
        drop_path_rate=0.1,
        stages=[
            dict(
                channels=384,
                num_heads=6,
                depth=11,
                embed=dict(
                    type='vt.ConvolutionalEmbed',
                    layers=[dict(out_channels=width, **relu) for width in (48, 96, 192, 384)],
                    patch=dict(kernel_size=1),
                ),
                class_tokens=1,
                position=dict(type='vt.AbsolutePosition'),
                feed_forward=dict(ratio=3),
                norm=True,
            ),
        ],
    ),
)
