# Common settings of backbones of token parts on Fashion-MNIST.
_base_ = 'fashion-mnist.py'

model = dict(
    type='ImageClassifier',
    backbone=dict(image_size=32),
    head=dict(
        type='LinearClsHead',
        num_classes=10,
        in_channels=384,
        init_cfg=dict(type='TruncNormal', layer='Linear', std=0.02),
        loss=dict(type='CrossEntropyLoss', loss_weight=1.0),
        topk=(1,),
    ),
)

# Positions start at 0.02, patches at 0.6: at the common rate, positions have no effect for many epochs.
optim_wrapper = dict(
    paramwise_cfg=dict(
        custom_keys={'position.vectors': dict(lr_mult=20.0, decay_mult=0.0)},
        bypass_duplicate=True,  # shared parameters are counted once
    ),
)
