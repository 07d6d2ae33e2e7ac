# A small PVTv2 (Wang et al., 2022) at the FLOPs of ResNet-18 at half width. Scores by rate and by number of images:
# ../README.md.
# PYTHONPATH=. python tools/train.py projects/relations/configs/pvtv2_2560-iters_svrt-1.py
_base_ = ['../../../configs/_base_/models/classifier.py', '_base_/sample-efficiency.py']

norm = dict(type='LN', eps=1e-6)
first = dict(type='vt.PatchEmbed', kernel_size=7, stride=4, padding=3, norm_cfg=norm)
embed = dict(type='vt.PatchEmbed', kernel_size=3, stride=2, padding=1, norm_cfg=norm)


def reduced(ratio):
    return dict(type='vt.ReducedAttention', reduce=dict(type='vt.StridedReduction', ratio=ratio))


model = dict(
    backbone=dict(
        type='vt.TokenBackbone',
        image_size=64,
        every_stage=dict(norm=True, feed_forward=dict(local=dict(type='vt.OnMap'))),
        stages=[
            dict(channels=32, num_heads=1, depth=3, embed=first, attention=reduced(4), feed_forward=dict(ratio=8)),
            dict(channels=64, num_heads=2, depth=4, embed=embed, attention=reduced(2), feed_forward=dict(ratio=8)),
            dict(channels=160, num_heads=5, depth=6, embed=embed),
            dict(channels=256, num_heads=8, depth=4, embed=embed),
        ],
    ),
    head=dict(num_classes=2, in_channels=256),
)
