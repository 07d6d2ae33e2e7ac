# VT-ResNet-18 at half width with VT-FPN on the embedded scenes, with visual tokens in backbone and neck.
# Not trained here yet.
# vt train vt-fpn_vt-r18_digit-scenes
_base_ = 'vt-fpn_r18_digit-scenes.py'

model = dict(
    backbone=dict(
        _delete_=True,
        type='vt.VTResNet',
        depth=18,
        stem_channels=32,
        base_channels=32,
        out_type='featmap',
        out_indices=(0, 1, 2, 3),
    ),
    neck=dict(in_channels=[32, 64, 128, 128]),
    decode_head=dict(feature_strides=[4, 8, 16, 16]),
)
