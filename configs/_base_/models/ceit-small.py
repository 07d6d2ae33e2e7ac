# CeiT-S (Yuan et al., ICCV 2021): a convolutional stem, a convolution in the feed-forward, and attention of the last
# class token to the class tokens of all blocks.
batch_norm = dict(type='vt.TokenBatchNorm')

architecture = dict(
    backbone=dict(
        type='vt.TokenBackbone',
        # These layers are 1x1 convolutions in the authors' code, with PyTorch's initialisation.
        layer_inits=[dict(type='vt.LayerInit', layer='Linear', names='fc[12]$')],
        out_type='layers',
        drop_path_rate=0.1,
        stages=[
            dict(
                channels=384,
                num_heads=6,
                depth=12,
                embed=dict(
                    type='vt.ConvolutionalEmbed',
                    layers=[dict(out_channels=64, kernel_size=7, stride=2, norm_cfg=dict(type='BN'), act_cfg=None)],
                    pool=3,
                    patch=dict(kernel_size=4),
                ),
                class_tokens=1,
                position=dict(type='vt.AbsolutePosition'),
                feed_forward=dict(
                    local=dict(type='vt.OnMap', module=dict(norm_cfg=dict(type='BN'), bias=True)),
                    norm_cfg=batch_norm,
                    fc1_act_cfg=dict(type='GELU'),
                    class_tokens='passed',
                ),
            ),
        ],
    ),
    neck=dict(type='vt.LayerwiseClassAttention', channels=384, depth=12, num_heads=6),
)

# The last block's feed-forward output for the patches is unused, which DDP must be told.
find_unused_parameters = True
