# Twins-SVT-S (Chu et al., NeurIPS 2021): windows and reduced keys in turn, positions by a convolution.
windows = dict(type='vt.WindowAttention', windows=dict(type='vt.Windows', window=7, shrink=False))
first = dict(type='vt.PatchEmbed', kernel_size=4, padding=0, norm_cfg=dict(type='LN'))
embed = dict(type='vt.PatchEmbed', kernel_size=2, padding=0, norm_cfg=dict(type='LN'))

architecture = dict(
    backbone=dict(
        type='vt.TokenBackbone',
        drop_path_rate=0.2,
        every_stage=dict(
            peg=dict(type='vt.PEG'),
        ),
        stages=[
            dict(
                channels=64,
                num_heads=2,
                depth=2,
                embed=first,
                attention=[windows, dict(type='vt.ReducedAttention', reduce=dict(type='vt.StridedReduction', ratio=8))],
            ),
            dict(
                channels=128,
                num_heads=4,
                depth=2,
                embed=embed,
                attention=[windows, dict(type='vt.ReducedAttention', reduce=dict(type='vt.StridedReduction', ratio=4))],
            ),
            dict(
                channels=256,
                num_heads=8,
                depth=10,
                embed=embed,
                attention=[windows, dict(type='vt.ReducedAttention', reduce=dict(type='vt.StridedReduction', ratio=2))],
            ),
            dict(
                channels=512,
                num_heads=16,
                depth=4,
                embed=embed,
                attention=[windows, dict()],
                norm=True,
            ),
        ],
    ),
    head=dict(in_channels=512),
)
