# Swin-T (Liu et al., ICCV 2021): windows of 7x7 tokens, every other block shifted by half a window.
bias = dict(type='vt.RelativePositionBias')
attention = [
    dict(type='vt.WindowAttention', bias=bias, windows=dict(type='vt.Windows', window=7)),
    dict(type='vt.WindowAttention', bias=bias, windows=dict(type='vt.Windows', window=7, shift=3)),
]
merging = dict(type='vt.PatchMerging')

architecture = dict(
    backbone=dict(
        type='vt.TokenBackbone',
        drop_path_rate=0.2,
        every_stage=dict(
            norm_cfg=dict(type='LN'),
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
