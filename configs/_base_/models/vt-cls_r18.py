# The small classifier: a ResNet of three stages and 16 to 64 channels for small images, eight visual tokens and a class
# token, and a transformer encoder of six layers.
model = dict(
    type='ImageClassifier',
    backbone=dict(
        type='ResNet_CIFAR',
        depth=18,
        num_stages=3,
        stem_channels=16,
        base_channels=16,
        strides=(1, 2, 2),
        dilations=(1, 1, 1),
        out_indices=(2,),
    ),
    neck=dict(
        type='vt.TokenEncoder',
        in_channels=64,
        token_channels=128,
        num_tokens=8,
        depth=6,
        num_heads=8,
        feedforward_channels=256,
        dropout=0.1,
    ),
    head=dict(
        type='LinearClsHead',
        num_classes=10,
        in_channels=128,
        loss=dict(type='CrossEntropyLoss', loss_weight=1.0),
        topk=(1,),
    ),
)
