# Common settings of small video models on the moving digits.
_base_ = ['../schedules/adamw_bs32-15e.py', '../default_runtime.py']

model = dict(
    type='vt.VideoClassifier',
    backbone=dict(type='vt.MViT', num_frames=8, image_size=32),
    head=dict(
        type='LinearClsHead',
        num_classes=8,
        in_channels=128,
        loss=dict(type='CrossEntropyLoss', loss_weight=1.0),
        topk=(1,),
    ),
)

# Positions start at 0.02, cubes at 0.5: at the common rate times and places stay unseen for epochs.
positions = {'backbone.stages.0.position': dict(lr_mult=10.0, decay_mult=0.0)}
optim_wrapper = dict(optimizer=dict(lr=1e-3), clip_grad=dict(max_norm=1.0), paramwise_cfg=dict(custom_keys=positions))
train_cfg = dict(max_epochs=6)
