# MViT-B-16 for images (Fan et al., ICCV 2021, section 5).
architecture = dict(
    backbone=dict(type='vt.MViT', arch='base', drop_path_rate=0.1),
    head=dict(in_channels=768, init_cfg=dict(type='TruncNormal', layer='Linear', std=0.02)),
)
