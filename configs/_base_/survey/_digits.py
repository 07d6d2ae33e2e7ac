# What the survey's systems have in common on the embedded digits, at 64x64.
_base_ = [
    '../datasets/digits.py',
    '../schedules/adamw_bs32-15e.py',
    '../default_runtime.py',
]

model = dict(
    type='ImageClassifier',
    backbone=dict(image_size=64),
    head=dict(
        type='LinearClsHead',
        num_classes=10,
        in_channels=384,
        loss=dict(type='CrossEntropyLoss', loss_weight=1.0),
        topk=(1,),
    ),
)
