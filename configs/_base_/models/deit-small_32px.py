# DeiT of about ResNet-18's FLOPs for images of 32x32: patches of 4x4 pixels, 256 channels, ten blocks.
architecture = dict(
    backbone=dict(
        type='vt.TokenBackbone',
        out_type='class_tokens',
        stages=[
            dict(
                channels=256,
                depth=10,
                embed=dict(type='vt.PatchEmbed', kernel_size=4),
                class_tokens=1,
                position=dict(type='vt.AbsolutePosition'),
                num_heads=4,
                norm=True,
            ),
        ],
    ),
    head=dict(in_channels=256),
)
