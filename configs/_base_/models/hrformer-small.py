# HRFormer-S (Yuan et al., NeurIPS 2021): up to four parallel resolutions, windows of 7x7 in each, a depthwise
# convolution in the feed-forward, and HRNet's head.
gelu = dict(type='GELU')

architecture = dict(
    backbone=dict(
        type='vt.HRFormer',
        block=dict(
            attention=dict(
                type='vt.WindowAttention',
                bias=dict(type='vt.RelativePositionBias'),
                windows=dict(type='vt.Windows', window=7, shrink=False, centered=True),
            ),
            feed_forward=dict(
                norm_cfg=dict(type='vt.TokenBatchNorm'),
                fc1_act_cfg=gelu,
                local=dict(type='vt.OnMap', module=dict(norm_cfg=dict(type='BN'), bias=True)),
                fc2_act_cfg=gelu,
            ),
        ),
        stages=[
            dict(modules=1, depth=2, channels=[32, 64], num_heads=[1, 2]),
            dict(modules=4, depth=2, channels=[32, 64, 128], num_heads=[1, 2, 4]),
            dict(modules=2, depth=2, channels=[32, 64, 128, 256], num_heads=[1, 2, 4, 8]),
        ],
    ),
    neck=[
        dict(type='vt.ScaleFusion', in_channels=[32, 64, 128, 256]),
        dict(type='GlobalAveragePooling'),
    ],
    head=dict(in_channels=2048, init_cfg=dict(_delete_=True, type='vt.LayerInit', layer='Linear')),
)
