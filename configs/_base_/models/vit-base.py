# ViT-B/16 (Dosovitskiy et al., ICLR 2021) with DeiT's recipe, as DeiT-B.
architecture = dict(
    backbone=dict(
        type='vt.TokenBackbone',
        out_type='class_tokens',
        drop_path_rate=0.1,
        stages=[
            dict(
                channels=768,
                depth=12,
                embed=dict(type='vt.PatchEmbed', kernel_size=16),
                class_tokens=1,
                position=dict(type='vt.AbsolutePosition'),
                num_heads=12,
                norm=True,
            ),
        ],
    ),
    head=dict(in_channels=768),
)
