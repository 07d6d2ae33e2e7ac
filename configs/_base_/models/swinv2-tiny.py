# Swin v2-T at 256x256, windows of 8x8 (Liu et al., CVPR 2022): cosine attention, continuous positions, post-norm.
bias = dict(type='vt.ContinuousPositionBias')
attention = [
    dict(type='vt.CosineAttention', bias=bias, windows=dict(type='vt.Windows', window=8)),
    dict(type='vt.CosineAttention', bias=bias, windows=dict(type='vt.Windows', window=8, shift=4)),
]
merging = dict(type='vt.PatchMerging', use_post_norm=True)

architecture = dict(
    backbone=dict(
        type='vt.TokenBackbone',
        drop_path_rate=0.2,
        every_stage=dict(
            norm_cfg=dict(type='LN'),
            post_norm=True,
            attention=attention,
        ),
        stages=[
            dict(
                channels=96,
                num_heads=3,
                depth=2,
                embed=dict(type='vt.PatchEmbed', kernel_size=4, norm_cfg=dict(type='LN')),
            ),
            dict(channels=192, num_heads=6, depth=2, embed=merging),
            dict(channels=384, num_heads=12, depth=6, embed=merging),
            dict(channels=768, num_heads=24, depth=2, embed=merging, norm=True),
        ],
    ),
    head=dict(in_channels=768),
)
