# CaiT-S24 (Touvron et al., ICCV 2021): LayerScale, talking heads, and two blocks of class attention.
architecture = dict(
    backbone=dict(
        type='vt.TokenBackbone',
        layer_inits=[dict(type='vt.LayerInit', layer='Conv2d', names=r'mix(_maps)?\.0$', std=0.02, bias=0.0)],
        out_type='class_tokens',
        every_stage=dict(
            layer_scale=1e-5,
            num_heads=8,
        ),
        stages=[
            dict(
                channels=384,
                depth=24,
                drop_path=0.1,
                embed=dict(type='vt.PatchEmbed', kernel_size=16),
                position=dict(type='vt.AbsolutePosition'),
                attention=dict(
                    type='vt.TalkingHeadsAttention',
                    mix=dict(type='vt.HeadMixing'),
                    mix_maps=dict(type='vt.HeadMixing'),
                ),
            ),
            dict(channels=384, depth=2, class_tokens=1, attention=dict(type='vt.ClassAttention'), norm=True),
        ],
    ),
)
