# T2T-ViT_t-14 (Yuan et al., ICCV 2021): overlapping soft splits with two transformers between them; blocks without
# biases in the projections to Q, K and V.
architecture = dict(
    backbone=dict(
        type='vt.TokenBackbone',
        out_type='class_tokens',
        drop_path_rate=0.1,
        stages=[
            dict(
                channels=384,
                depth=14,
                embed=dict(type='vt.SoftSplit'),
                class_tokens=1,
                position=dict(type='vt.SinusoidalPosition'),
                num_heads=6,
                attention=dict(qkv_bias=False),
                feed_forward=dict(ratio=3),
                norm_cfg=dict(type='LN', eps=1e-5),
                norm=True,
            ),
        ],
    ),
)
