# Common settings of models on ImageNet-1k: MViT's regularisation and schedule (Fan et al., ICCV 2021, section 5).
_base_ = ['../schedules/adamw_bs4096-300e.py', '../default_runtime.py']

model = dict(
    type='ImageClassifier',
    backbone=dict(type='vt.MViT', drop_path_rate=0.1),
    head=dict(
        type='LinearClsHead',
        num_classes=1000,
        in_channels=768,
        init_cfg=dict(type='TruncNormal', layer='Linear', std=0.02),
        loss=dict(type='LabelSmoothLoss', label_smooth_val=0.1, mode='original'),
        topk=(1, 5),
    ),
    train_cfg=dict(augments=[dict(type='Mixup', alpha=0.8), dict(type='CutMix', alpha=1.0)]),
)
