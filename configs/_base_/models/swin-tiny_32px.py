# Swin of about ResNet-18's FLOPs for images of 32x32: patches of 2x2 pixels, windows of 4x4 tokens, three stages.
bias = dict(type='vt.RelativePositionBias')
attention = [
    dict(type='vt.WindowAttention', bias=bias, windows=dict(type='vt.Windows', window=4)),
    dict(type='vt.WindowAttention', bias=bias, windows=dict(type='vt.Windows', window=4, shift=2)),
]
merging = dict(type='vt.PatchMerging')

architecture = dict(
    backbone=dict(
        type='vt.TokenBackbone',
        every_stage=dict(norm_cfg=dict(type='LN'), attention=attention),
        stages=[
            dict(
                channels=128,
                num_heads=4,
                depth=2,
                embed=dict(type='vt.PatchEmbed', kernel_size=2, norm_cfg=dict(type='LN')),
            ),
            dict(channels=256, num_heads=8, depth=6, embed=merging),
            dict(channels=512, num_heads=16, depth=2, embed=merging, norm=True),
        ],
    ),
    head=dict(in_channels=512),
)
