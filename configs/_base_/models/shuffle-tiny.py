# Shuffle-T (Huang et al., 2021): windows and dilated windows in turn, a convolution of a window's width between
# attention and feed-forward, batch normalisation.
norm = dict(type='BN')
relu = dict(type='ReLU6')
stem = dict(
    type='vt.ConvolutionalEmbed',
    layers=[
        dict(out_channels=32, kernel_size=3, stride=2, bias=True, norm_cfg=norm, act_cfg=relu),
        dict(out_channels=96, kernel_size=3, stride=2, bias=True, norm_cfg=norm, act_cfg=relu),
    ],
    patch=dict(kernel_size=1),
)
merging = dict(
    type='vt.ConvolutionalEmbed',
    layers=[
        dict(
            kernel_size=2,
            stride=2,
            padding=0,
            bias=False,
            order=('norm', 'conv', 'act'),
            norm_cfg=norm,
            act_cfg=None,
        )
    ],
)
attention = [
    dict(
        type='vt.WindowAttention',
        qkv_bias=False,
        bias=dict(type='vt.RelativePositionBias'),
        windows=dict(type='vt.Windows', window=7, dilated=dilated),
    )
    for dilated in (False, True)
]

architecture = dict(
    backbone=dict(
        type='vt.TokenBackbone',
        layer_inits=[dict(type='vt.LayerInit', layer='Conv2d', std=0.02, bias=0.0)],
        every_stage=dict(
            norm_cfg=dict(type='vt.TokenBatchNorm'),
            attention=attention,
            between=dict(type='vt.OnMap', module=dict(kernel_size=7)),
            feed_forward=dict(act_cfg=relu),
        ),
        stages=[
            dict(channels=96, num_heads=3, depth=2, embed=stem, drop_path=0.0),
            dict(channels=192, num_heads=6, depth=2, embed=merging, drop_path=0.1 / 3),
            dict(channels=384, num_heads=12, depth=6, embed=merging, drop_path=0.2 / 3),
            dict(channels=768, num_heads=24, depth=2, embed=merging, drop_path=0.1),
        ],
    ),
    head=dict(in_channels=768),
)
