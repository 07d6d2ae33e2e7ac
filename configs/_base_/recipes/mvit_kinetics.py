# Common settings of models on Kinetics: MViT's regularisation and schedule (Fan et al., ICCV 2021, section 4).
_base_ = ['../schedules/adamw_bs512-200e.py', '../default_runtime.py']

model = dict(
    type='vt.VideoClassifier',
    backbone=dict(type='vt.MViT', num_frames=16, drop_path_rate=0.2),
    head=dict(
        type='vt.DropoutLinearClsHead',
        num_classes=400,
        in_channels=768,
        init_cfg=dict(type='TruncNormal', layer='Linear', std=0.02),
        dropout=0.5,
        loss=dict(type='LabelSmoothLoss', label_smooth_val=0.1, mode='original'),
        topk=(1, 5),
    ),
    train_cfg=dict(augments=[dict(type='Mixup', alpha=0.8), dict(type='CutMix', alpha=1.0)]),
)
