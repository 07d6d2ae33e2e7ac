# DeiT-S (Touvron et al., ICML 2021): ViT with 384 channels.
architecture = dict(
    backbone=dict(
        type='vt.TokenBackbone',
        out_type='class_tokens',
        drop_path_rate=0.1,
        stages=[
            dict(
                channels=384,
                depth=12,
                embed=dict(type='vt.PatchEmbed', kernel_size=16),
                class_tokens=1,
                position=dict(type='vt.AbsolutePosition'),
                num_heads=6,
                norm=True,
            ),
        ],
    ),
)
