# ResNet-18 at half width with FPN, from scratch, for small images on a CPU.
_base_ = 'fpn_r50.py'

norm_cfg = dict(type='BN', requires_grad=True)
model = dict(
    data_preprocessor=dict(mean=[127.5] * 3, std=[63.75] * 3, bgr_to_rgb=False),
    backbone=dict(type='ResNet', depth=18, stem_channels=32, base_channels=32, norm_cfg=norm_cfg, init_cfg=None),
    neck=dict(in_channels=[32, 64, 128, 256], out_channels=128, norm_cfg=norm_cfg),
    decode_head=dict(in_channels=[128, 128, 128, 128], channels=64, dropout_ratio=0.0, norm_cfg=norm_cfg),
)
