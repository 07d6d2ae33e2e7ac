# Early convolutions (Xiao et al., NeurIPS 2021), ViT_C-4GF: four 3x3 convolutions of stride 2 and a 1x1 instead of
# patches and one block; three times the channels in the feed-forward.
relu = dict(kernel_size=3, stride=2, norm_cfg=dict(type='BN'))
widths = (48, 96, 192, 384)
# pycls: Xavier initialisation of the MLP and the projections to Q, K and V; PyTorch's of the output projection.
layer_inits = [
    dict(type='Xavier', layer='Linear', distribution='uniform'),
    dict(type='vt.LayerInit', layer='Linear', names=r'part\.proj$', bias=0.0),
    dict(type='vt.LayerInit', layer='Conv2d', names='patch', std=widths[-1] ** -0.5, bias=0.0),
]
for index, width in enumerate(widths):
    layer_inits.append(
        dict(type='vt.LayerInit', layer='Conv2d', names=rf'layers\.{index}\.conv$', std=(2 / width) ** 0.5)
    )

architecture = dict(
    backbone=dict(
        type='vt.TokenBackbone',
        layer_inits=layer_inits,
        out_type='class_tokens',
        drop_path_rate=0.1,
        stages=[
            dict(
                channels=384,
                num_heads=6,
                depth=11,
                embed=dict(
                    type='vt.ConvolutionalEmbed',
                    layers=[dict(out_channels=width, **relu) for width in widths],
                    patch=dict(kernel_size=1),
                ),
                class_tokens=1,
                position=dict(type='vt.AbsolutePosition'),
                feed_forward=dict(ratio=3),
                norm_cfg=dict(type='LN', eps=1e-5),
                norm=True,
            ),
        ],
    ),
    head=dict(init_cfg=dict(_delete_=True, type='Constant', layer='Linear', val=0.0)),
)
