# MViT-B for videos (Fan et al., ICCV 2021): clips of 16 frames, every 4th.
model = dict(
    type='vt.VideoClassifier',
    backbone=dict(type='vt.MViT', arch='base', num_frames=16, drop_path_rate=0.2),
    head=dict(
        type='vt.DropoutLinearClsHead',
        num_classes='auto',
        in_channels=768,
        init_cfg=dict(type='TruncNormal', layer='Linear', std=0.02),
        dropout=0.5,
        loss=dict(type='LabelSmoothLoss', label_smooth_val=0.1, mode='original'),
        topk=(1,),
    ),
)
