# CSWin-T (Dong et al., CVPR 2022): half of the heads in vertical stripes, half in horizontal ones; LePE.
norm = dict(type='LN')
first = dict(type='vt.PatchEmbed', kernel_size=7, stride=4, padding=2, norm_cfg=norm)
embed = dict(type='vt.PatchEmbed', kernel_size=3, stride=2, padding=1, norm_cfg=norm)
padded = dict(type='vt.Windows', shrink=False, centered=True)
lepe = dict(local=dict(type='vt.OnMap'))
stripes = [
    dict(
        type='vt.ParallelAttention',
        **lepe,
        branches=[
            dict(windows=dict(window=(None, width), **padded)),
            dict(windows=dict(window=(width, None), **padded)),
        ],
    )
    for width in (1, 2, 7)
]

architecture = dict(
    backbone=dict(
        type='vt.TokenBackbone',
        drop_path_rate=0.2,
        every_stage=dict(
            norm_cfg=norm,
        ),
        stages=[
            dict(channels=64, num_heads=2, depth=1, embed=first, attention=stripes[0]),
            dict(channels=128, num_heads=4, depth=2, embed=embed, attention=stripes[1]),
            dict(channels=256, num_heads=8, depth=21, embed=embed, attention=stripes[2]),
            dict(
                channels=512,
                num_heads=16,
                depth=1,
                embed=embed,
                attention=dict(type='vt.WindowAttention', local=dict(type='vt.OnMap')),
                norm=True,
            ),
        ],
    ),
    head=dict(in_channels=512),
)
