# A classifier on the backbone of parts: pre-norm blocks of attention and a feed-forward four times as wide; DeiT's
# regularisation. A system of the survey names its stages.
model = dict(
    type='ImageClassifier',
    backbone=dict(type='vt.TokenBackbone', feed_forward=dict(type='vt.FeedForward')),
    head=dict(
        type='LinearClsHead',
        num_classes=1000,
        in_channels=384,
        loss=dict(type='LabelSmoothLoss', label_smooth_val=0.1, mode='original'),
        topk=(1, 5),
    ),
    train_cfg=dict(augments=[dict(type='Mixup', alpha=0.8), dict(type='CutMix', alpha=1.0)]),
)
