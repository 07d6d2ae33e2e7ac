# VT modules on other backbones, on the embedded digits at 64x64: two modules of eight tokens in place of the last
# stage, on a map of 4x4 pixels, with a smaller learning rate for their matrices (docs/training.md).
_base_ = [
    '../datasets/digits.py',
    '../schedules/adamw_bs32-15e.py',
    '../default_runtime.py',
]

model = dict(
    type='ImageClassifier',
    backbone=dict(type='vt.VTBackbone', num_modules=2, num_tokens=8, token_channels=256),
    neck=dict(type='vt.TokenAverage'),
    head=dict(
        type='LinearClsHead',
        num_classes=10,
        in_channels=256,
        loss=dict(type='CrossEntropyLoss', loss_weight=1.0),
        topk=(1,),
    ),
)

token_side = dict(lr_mult=0.3, decay_mult=1 / 0.3, eps=1e-8 / 0.3)
optim_wrapper = dict(
    clip_grad=dict(max_norm=1.0),
    paramwise_cfg=dict(custom_keys=dict(tokenizer=token_side, relation=token_side, projector=token_side)),
)
