# GG-T (Yu et al., NeurIPS 2021), after the paper: attention in dilated windows over the whole grid, in parallel
# with a depthwise convolution of the values.
merging = dict(type='vt.PatchMerging')
glances = [
    dict(
        type='vt.WindowAttention',
        bias=dict(type='vt.RelativePositionBias'),
        windows=dict(type='vt.Windows', window=7, dilated=True),
        local=dict(type='vt.OnMap', module=dict(kernel_size=side)),
    )
    for side in (9, 5, 3, 3)
]

architecture = dict(
    backbone=dict(
        type='vt.TokenBackbone',
        drop_path_rate=0.2,
        every_stage=dict(
            norm_cfg=dict(type='LN'),
        ),
        stages=[
            dict(
                channels=96,
                num_heads=3,
                depth=2,
                embed=dict(type='vt.PatchEmbed', kernel_size=4, norm_cfg=dict(type='LN')),
                attention=glances[0],
            ),
            dict(channels=192, num_heads=6, depth=2, embed=merging, attention=glances[1]),
            dict(channels=384, num_heads=12, depth=6, embed=merging, attention=glances[2]),
            dict(channels=768, num_heads=24, depth=2, embed=merging, attention=glances[3], norm=True),
        ],
    ),
    head=dict(in_channels=768),
)
