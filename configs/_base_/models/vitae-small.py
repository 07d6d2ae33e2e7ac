# ViTAE-S (Xu et al., NeurIPS 2021): two reduction cells, with attention by random features, a third of convolutions,
# and 14 normal cells; the sizes of the authors' ViTAE_basic_Small, whose weights need epsilon=1e-8 in both cells with
# attention.
architecture = dict(
    backbone=dict(
        type='vt.TokenBackbone',
        drop_path_rate=0.1,
        stages=[
            dict(
                channels=96,
                num_heads=1,
                depth=0,
                embed=dict(type='vt.ReductionCell', kernel_size=7, stride=4, dilations=[1, 2, 3, 4]),
            ),
            dict(
                channels=192,
                num_heads=1,
                depth=0,
                embed=dict(type='vt.ReductionCell', kernel_size=3, stride=2, dilations=[1, 2, 3]),
            ),
            dict(
                type='vt.NormalCell',
                channels=384,
                num_heads=6,
                depth=14,
                groups=96,
                embed=dict(
                    type='vt.ReductionCell',
                    kernel_size=3,
                    stride=2,
                    dilations=[1, 2],
                    transform=False,
                ),
                feed_forward=dict(ratio=3),
            ),
        ],
    ),
)
