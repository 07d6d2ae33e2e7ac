# VT-ResNet-50 with VT-FPN on ADE20K, with visual tokens in the backbone's last stage, at stride 16, and in the neck.
# Not trained here yet.
# bash tools/dist_train.sh configs/vt_fpn/vt-fpn_vt-r50_4xb4-160k_ade20k-512x512.py 4
_base_ = 'vt-fpn_r50_4xb4-160k_ade20k-512x512.py'

model = dict(
    backbone=dict(
        _delete_=True,
        type='vt.VTResNet',
        depth=50,
        groups=2,
        out_type='featmap',
        out_indices=(0, 1, 2, 3),
        norm_cfg={{_base_.norm_cfg}},
        init_cfg=dict(type='Pretrained', checkpoint='torchvision://resnet50'),
    ),
    neck=dict(in_channels=[256, 512, 1024, 1024]),
    decode_head=dict(feature_strides=[4, 8, 16, 16]),
)
