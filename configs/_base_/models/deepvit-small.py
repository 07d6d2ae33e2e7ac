# DeepViT-S (Zhou et al., 2021): the last five of 16 blocks mix the attention maps of the heads by a convolution
# (re-attention); the output of every branch is doubled.
norm = dict(type='BN')
plain = dict()
# Queries and keys have 33 channels in a head.
again = dict(type='vt.TalkingHeadsAttention', mix_maps=dict(type='vt.HeadMixing', norm='BatchNorm2d', gain=33**-0.5))

architecture = dict(
    backbone=dict(
        type='vt.TokenBackbone',
        out_type='class_tokens',
        drop_path_rate=0.2,
        every_stage=dict(
            norm_cfg=dict(type='LN', eps=4e-6),  # of half the tokens it would be 1e-6
            gain=2.0,
        ),
        stages=[
            dict(
                channels=396,
                num_heads=12,
                depth=16,
                embed=dict(
                    type='vt.ConvolutionalEmbed',
                    layers=[
                        dict(out_channels=64, kernel_size=7, stride=2, norm_cfg=norm),
                        dict(out_channels=64, kernel_size=3, norm_cfg=norm),
                    ],
                    patch=dict(kernel_size=8),
                ),
                class_tokens=1,
                position=dict(type='vt.AbsolutePosition'),
                attention=[plain] * 11 + [again] * 5,
                feed_forward=dict(ratio=3),
                norm=dict(type='LN', eps=1e-6),
            ),
        ],
    ),
    head=dict(in_channels=396),
)
