# MSG-T (Fang et al., 2021, first version): a messenger for each window of 7x7, shuffled over 4x4, 4x4 and 2x2 windows.
attention = dict(
    type='vt.WindowAttention',
    bias=dict(type='vt.MessengerBias'),
    windows=dict(type='vt.MessengerWindows', window=7),
)
first = dict(
    type='vt.MessengerEmbed',
    embed=dict(type='vt.PatchEmbed', kernel_size=4, norm_cfg=dict(type='LN')),
    window=7,
    region=4,
)
merging = dict(type='vt.MessengerMerging', window=7)

architecture = dict(
    backbone=dict(
        type='vt.TokenBackbone',
        out_type='messengers',
        drop_path_rate=0.2,
        every_stage=dict(
            type='vt.MessengerBlock',
            norm_cfg=dict(type='LN'),
            attention=attention,
        ),
        stages=[
            dict(channels=96, num_heads=3, depth=2, embed=first, region=4),
            dict(channels=192, num_heads=6, depth=2, embed=merging, region=4),
            dict(channels=384, num_heads=12, depth=6, embed=merging, region=2),
            dict(channels=768, num_heads=24, depth=2, embed=merging, region=1, norm=True),
        ],
    ),
    head=dict(in_channels=768),
)
