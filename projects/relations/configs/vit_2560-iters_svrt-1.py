# A small ViT (Dosovitskiy et al., ICLR 2021) at the FLOPs of ResNet-18 at half width. Scores by rate and by number of
# images: ../README.md.
# PYTHONPATH=. python tools/train.py projects/relations/configs/vit_2560-iters_svrt-1.py
_base_ = ['../../../configs/_base_/models/classifier.py', '_base_/sample-efficiency.py']

model = dict(
    backbone=dict(
        type='vt.TokenBackbone',
        image_size=64,
        stages=[
            dict(
                channels=128,
                depth=6,
                embed=dict(type='vt.PatchEmbed', kernel_size=8),
                position=dict(type='vt.AbsolutePosition'),
                num_heads=4,
                norm=True,
            ),
        ],
    ),
    head=dict(num_classes=2, in_channels=128),
)
