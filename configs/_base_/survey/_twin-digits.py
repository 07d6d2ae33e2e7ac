# What the survey's systems have in common on the twin digits, enlarged to 64x64.
_base_ = [
    '../datasets/twin-digits.py',
    '../schedules/adamw_bs32-3e.py',
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

pipeline = [dict(type='Resize', scale=64, interpolation='bicubic'), dict(type='PackInputs')]
train_dataloader = dict(dataset=dict(pipeline=pipeline))
val_dataloader = dict(dataset=dict(pipeline=pipeline))
test_dataloader = val_dataloader
