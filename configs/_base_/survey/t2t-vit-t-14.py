# T2T-ViT_t-14 (Yuan et al., ICCV 2021), MMPretrain's code: its soft split is an attention between two unfoldings.
system = dict(
    backbone=dict(
        type='T2T_ViT',
        img_size=224,
        embed_dims=384,
        t2t_cfg=dict(token_dims=64, use_performer=False),
        num_layers=14,
        layer_cfgs=dict(num_heads=6, feedforward_channels=1152),
        drop_path_rate=0.1,
    ),
    head=dict(type='VisionTransformerClsHead'),
)
