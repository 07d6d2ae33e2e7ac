# DeiT's recipe on ImageNet-1k, with which all models of the survey can be compared: facebookresearch/deit 7e160fe,
# main.py.
# How a model's own authors trained it is in NAME_...-authors_in1k.py; docs/survey.md has them side by side.
_base_ = [
    '../datasets/imagenet_bs64_randaugment.py',
    '../schedules/adamw_bs1024-300e.py',
    '../default_runtime.py',
]

model = dict(
    type='ImageClassifier',
    head=dict(
        type='LinearClsHead',
        num_classes=1000,
        in_channels=384,
        loss=dict(type='LabelSmoothLoss', label_smooth_val=0.1, mode='original'),
        topk=(1, 5),
    ),
    train_cfg=dict(augments=[dict(type='Mixup', alpha=0.8), dict(type='CutMix', alpha=1.0)]),
)

train_dataloader = dict(sampler=dict(type='RepeatAugSampler', num_repeats=3))  # an epoch takes a third, thrice each
optim_wrapper = dict(paramwise_cfg=dict(bypass_duplicate=True))  # what several parts share is one parameter
