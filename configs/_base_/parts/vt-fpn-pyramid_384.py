# VT-FPN on a pyramid of the one map, of 384 channels, of a ViT-S.
pyramid = [
    dict(type='vt.SimplePyramid', in_channels=384),
    dict(type='vt.VTFPN', in_channels=[96, 192, 384, 384], num_tokens=8, token_channels=1024),
]
