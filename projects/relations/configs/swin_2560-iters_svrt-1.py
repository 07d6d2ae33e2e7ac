# A small Swin transformer (Liu et al., ICCV 2021) at the FLOPs of ResNet-18 at half width. Scores by rate and by number
# of images: ../README.md.
# PYTHONPATH=. python tools/train.py projects/relations/configs/swin_2560-iters_svrt-1.py
_base_ = ['../../../configs/_base_/models/classifier.py', '_base_/sample-efficiency.py']

bias = dict(type='vt.RelativePositionBias')
attention = [
    dict(type='vt.WindowAttention', bias=bias, windows=dict(type='vt.Windows', window=4)),
    dict(type='vt.WindowAttention', bias=bias, windows=dict(type='vt.Windows', window=4, shift=2)),
]
attend_all = dict(type='vt.WindowAttention', bias=bias)  # the grid is 4x4
merging = dict(type='vt.PatchMerging')

model = dict(
    backbone=dict(
        type='vt.TokenBackbone',
        image_size=64,
        every_stage=dict(norm_cfg=dict(type='LN'), attention=attention),
        stages=[
            dict(
                channels=48,
                num_heads=2,
                depth=2,
                embed=dict(type='vt.PatchEmbed', kernel_size=4, norm_cfg=dict(type='LN')),
            ),
            dict(channels=96, num_heads=4, depth=2, embed=merging),
            dict(channels=192, num_heads=8, depth=8, embed=merging, attention=attend_all, norm=True),
        ],
    ),
    head=dict(num_classes=2, in_channels=192),
)
