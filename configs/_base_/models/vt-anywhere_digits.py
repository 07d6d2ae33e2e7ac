# What VT behind other backbones has in common on the embedded digits at 64x64: two modules of eight tokens in the place
# of the last stage, on a map of 4x4 pixels, with normalised steps (docs/training.md).
_base_ = [
    '../datasets/digits.py',
    '../schedules/adamw_bs32-15e.py',
    '../default_runtime.py',
]

model = dict(
    type='ImageClassifier',
    backbone=dict(type='vt.VTBackbone', num_modules=2, num_tokens=8, token_channels=256, step=0.3),
    neck=dict(type='vt.TokenAverage'),
    head=dict(
        type='LinearClsHead',
        num_classes=10,
        in_channels=256,
        loss=dict(type='CrossEntropyLoss', loss_weight=1.0),
        topk=(1,),
    ),
)

optim_wrapper = dict(clip_grad=dict(max_norm=1.0))
