# Twins-PCPVT-S (Chu et al., NeurIPS 2021): PVT with positions by a convolution.
first = dict(type='vt.PatchEmbed', kernel_size=4, padding=0, norm_cfg=dict(type='LN'))
embed = dict(type='vt.PatchEmbed', kernel_size=2, padding=0, norm_cfg=dict(type='LN'))

architecture = dict(
    backbone=dict(
        type='vt.TokenBackbone',
        drop_path_rate=0.2,
        every_stage=dict(
            peg=dict(type='vt.PEG'),
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
            dict(channels=512, num_heads=8, depth=3, embed=embed, norm=True),
        ],
    ),
    head=dict(in_channels=512),
)
