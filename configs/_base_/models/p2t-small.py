# P2T-S (Wu et al., TPAMI 2023): keys and values from pyramid pooling, with convolutions shared by a stage's blocks.
norm = dict(type='LN')
first = dict(type='vt.PatchEmbed', kernel_size=7, stride=4, padding=3, norm_cfg=norm)
embed = dict(type='vt.PatchEmbed', kernel_size=3, stride=2, padding=1, norm_cfg=norm)
hardswish = dict(type='HSwish')
pyramids = [
    dict(type='vt.ReducedAttention', reduce=dict(type='vt.PyramidReduction', ratios=ratios))
    for ratios in ([12, 16, 20, 24], [6, 8, 10, 12], [3, 4, 5, 6], [1, 2, 3, 4])
]

architecture = dict(
    backbone=dict(
        type='vt.TokenBackbone',
        # These layers are 1x1 convolutions in the authors' code, with PyTorch's initialisation.
        layer_inits=[dict(type='vt.LayerInit', layer='Linear', names='fc[12]$')],
        drop_path_rate=0.1,
        every_stage=dict(
            tied='attention.part.reduce.convolutions',
            feed_forward=dict(local=dict(type='vt.OnMap'), act_cfg=hardswish, fc1_act_cfg=hardswish),
        ),
        stages=[
            dict(channels=64, num_heads=1, depth=2, embed=first, attention=pyramids[0], feed_forward=dict(ratio=8)),
            dict(channels=128, num_heads=2, depth=2, embed=embed, attention=pyramids[1], feed_forward=dict(ratio=8)),
            dict(channels=320, num_heads=5, depth=9, embed=embed, attention=pyramids[2]),
            dict(channels=512, num_heads=8, depth=3, embed=embed, attention=pyramids[3]),
        ],
    ),
    head=dict(in_channels=512),
)
