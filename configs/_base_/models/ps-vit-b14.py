# PS-ViT-B/14 (Yue et al., ICCV 2021): four rounds of sampling at 14x14 points, then ten blocks with a class token.
norm = dict(type='LN')
shared = dict(attention=dict(qkv_bias=False), feed_forward=dict(ratio=3))

architecture = dict(
    backbone=dict(
        type='vt.TokenBackbone',
        layer_inits=[dict(type='vt.LayerInit', layer='Conv2d')],
        out_type='class_tokens',
        drop_path_rate=0.1,
        stages=[
            dict(
                channels=384,
                num_heads=6,
                depth=10,
                embed=dict(type='vt.ProgressiveSampling', num_heads=6, rounds=4, stride=4, **shared),
                class_tokens=1,
                norm_cfg=norm,
                norm=True,
                **shared,
            ),
        ],
    ),
)
