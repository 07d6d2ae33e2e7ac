# PVT-S (Wang et al., ICCV 2021): keys and values downsampled by 8x8, 4x4, 2x2; a class token in the last stage.
norm = dict(type='LN')
first = dict(type='vt.PatchEmbed', kernel_size=4, padding=0, norm_cfg=norm)
embed = dict(type='vt.PatchEmbed', kernel_size=2, padding=0, norm_cfg=norm)

architecture = dict(
    backbone=dict(
        type='vt.TokenBackbone',
        out_type='class_tokens',
        drop_path_rate=0.1,
        every_stage=dict(
            position=dict(type='vt.AbsolutePosition', resize='bilinear'),
        ),
        stages=[
            dict(
                channels=64,
                num_heads=1,
                depth=3,
                embed=first,
                attention=dict(type='vt.ReducedAttention', reduce=dict(type='vt.StridedReduction', ratio=8)),
                feed_forward=dict(ratio=8),
            ),
            dict(
                channels=128,
                num_heads=2,
                depth=4,
                embed=embed,
                attention=dict(type='vt.ReducedAttention', reduce=dict(type='vt.StridedReduction', ratio=4)),
                feed_forward=dict(ratio=8),
            ),
            dict(
                channels=320,
                num_heads=5,
                depth=6,
                embed=embed,
                attention=dict(type='vt.ReducedAttention', reduce=dict(type='vt.StridedReduction', ratio=2)),
            ),
            dict(channels=512, num_heads=8, depth=3, embed=embed, class_tokens=1, norm=True),
        ],
    ),
    head=dict(in_channels=512),
)
