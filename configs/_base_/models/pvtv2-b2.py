# PVTv2-B2 (Wang et al., 2022): overlapping patches, downsampled keys and values, a depthwise convolution in the
# feed-forward, no positions.
norm = dict(type='LN')
first = dict(type='vt.PatchEmbed', kernel_size=7, stride=4, padding=3, norm_cfg=norm)
embed = dict(type='vt.PatchEmbed', kernel_size=3, stride=2, padding=1, norm_cfg=norm)

architecture = dict(
    backbone=dict(
        type='vt.TokenBackbone',
        layer_inits=[dict(type='vt.LayerInit', layer='Conv2d', std='fan_out', bias=0.0)],
        drop_path_rate=0.1,
        every_stage=dict(
            norm=True,
            feed_forward=dict(local=dict(type='vt.OnMap')),
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
            dict(channels=512, num_heads=8, depth=3, embed=embed),
        ],
    ),
    head=dict(in_channels=512),
)
