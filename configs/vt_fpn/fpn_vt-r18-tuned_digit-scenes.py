# FPN on VT-ResNet-18 at half width, with the tuned recipe, on the embedded scenes, with tokens only in the backbone.
# mIoU 91.48, 90.62 % (seeds 0, 1), 3.4 min, bfloat16: Intel(R) Xeon(R) Processor, 1 thread, torch 2.14.1.
# vt train fpn_vt-r18-tuned_digit-scenes seed=0
_base_ = [
    '../baselines/fpn_r18_digit-scenes.py',
    '../_base_/recipes/tuned_adamw.py',
]

model = dict(
    backbone=dict(
        _delete_=True,
        type='vt.VTResNet',
        depth=18,
        stem_channels=32,
        base_channels=32,
        token_channels=512,
        out_type='featmap',
        out_indices=(0, 1, 2, 3),
    ),
    neck=dict(in_channels=[32, 64, 128, 128]),
    decode_head=dict(feature_strides=[4, 8, 16, 16]),
)
optim_wrapper = dict(optimizer=dict(lr=6e-3), paramwise_cfg=_base_.tuned)
