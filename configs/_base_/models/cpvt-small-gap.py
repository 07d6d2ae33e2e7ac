# CPVT-S-GAP (Chu et al., ICLR 2023): convolutional positions (PEG) after the first five blocks, average pooling.
architecture = dict(
    backbone=dict(
        type='vt.TokenBackbone',
        layer_inits=[dict(type='vt.LayerInit', layer='Conv2d', std='fan_out', bias=0.0)],
        drop_path_rate=0.1,
        stages=[
            dict(
                channels=384,
                num_heads=6,
                depth=12,
                embed=dict(type='vt.PatchEmbed', kernel_size=16),
                peg=dict(type='vt.PEG'),
                peg_blocks=5,
                norm=True,
            ),
        ],
    ),
)
