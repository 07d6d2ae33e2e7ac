# ResT-S (Zhang and Yang, NeurIPS 2021): keys and values of a depthwise convolution, mixed heads, pixel attention.
norm = dict(type='BN')
stem = dict(
    type='vt.ConvolutionalEmbed',
    layers=[
        dict(out_channels=32, kernel_size=3, stride=2, norm_cfg=norm),
        dict(out_channels=32, kernel_size=3, norm_cfg=norm),
        dict(out_channels=64, kernel_size=3, stride=2, bias=False, act_cfg=None),
    ],
)
embed = dict(type='vt.PatchEmbed', kernel_size=3, stride=2, padding=1, norm_cfg=dict(type='vt.TokenBatchNorm'))
mixed = dict(
    type='vt.TalkingHeadsAttention',
    mix=dict(type='vt.HeadMixing'),
    mix_maps=dict(type='vt.HeadMixing', convolve=False, norm='InstanceNorm2d'),
)
reduced = [
    dict(type='vt.ReducedAttention', reduce=dict(type='vt.StridedReduction', ratio=ratio, depthwise=True))
    for ratio in (8, 4, 2)
]
efficient = [mixed | each | dict(type='vt.EfficientAttention') for each in reduced]

architecture = dict(
    backbone=dict(
        type='vt.TokenBackbone',
        layer_inits=[dict(type='vt.LayerInit', layer='Conv2d', std=0.02)],
        drop_path_rate=0.1,
        every_stage=dict(
            norm_cfg=dict(type='LN'),
            position=dict(type='vt.OnMap', combine='gate'),
        ),
        stages=[
            dict(
                channels=64,
                num_heads=1,
                depth=2,
                embed=stem,
                attention=reduced[0],
            ),
            dict(channels=128, num_heads=2, depth=2, embed=embed, attention=efficient[1]),
            dict(channels=256, num_heads=4, depth=6, embed=embed, attention=efficient[2]),
            dict(channels=512, num_heads=8, depth=2, embed=embed, attention=mixed, norm=True),
        ],
    ),
    head=dict(in_channels=512),
)
