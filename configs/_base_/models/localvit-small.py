# LocalViT-S (Li et al., 2021): DeiT-S whose feed-forward is an inverted residual of convolutions.
batch_norm = dict(type='vt.TokenBatchNorm')
hardswish = dict(type='HSwish')

architecture = dict(
    backbone=dict(
        type='vt.TokenBackbone',
        layer_inits=[
            dict(type='vt.LayerInit', layer='Linear', names='fc[12]$'),  # 1x1 convolutions in the authors' code
            dict(type='vt.LayerInit', layer='Conv2d', names='squeeze', std=0.02, bias=0.0),
        ],
        out_type='class_tokens',
        drop_path_rate=0.1,
        stages=[
            dict(
                channels=384,
                num_heads=8,
                depth=12,
                embed=dict(type='vt.PatchEmbed', kernel_size=16),
                class_tokens=1,
                position=dict(type='vt.AbsolutePosition'),
                feed_forward=dict(
                    bias=False,
                    norm_cfg=batch_norm,
                    fc1_act_cfg=hardswish,
                    local=dict(type='vt.OnMap', module=dict(norm_cfg=dict(type='BN'))),
                    act_cfg=hardswish,
                    squeeze=dict(
                        type='vt.SqueezeExcite',
                        squeeze_channels=4,
                        act_cfg=(dict(type='ReLU'), dict(type='HSigmoid', bias=3.0, divisor=6.0)),
                    ),
                    class_tokens='dropped',
                ),
                feed_forward_branch=dict(norm_cfg=None, drop_path=0.0),
                norm=True,
            ),
        ],
    ),
)

# The last block's feed-forward output for the patches is unused, which DDP must be told.
find_unused_parameters = True
