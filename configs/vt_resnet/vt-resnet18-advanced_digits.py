# VT-ResNet-18 with the paper's advanced recipe (section 5.2), scaled down to the embedded digits, with a ResNet-18 as
# the teacher. It demonstrates the recipe; it does not improve the score.
# vt train resnet18_digits
# vt train vt-resnet18-advanced_digits model.teacher_checkpoint=work_dirs/resnet18_digits/epoch_15.pth
_base_ = [
    '../_base_/models/vt-resnet18_distilled.py',
    '../_base_/datasets/digits.py',
    '../_base_/schedules/rmsprop_bs2048-400e.py',
    '../_base_/default_runtime.py',
]

model = dict(
    teacher=dict(
        _delete_=True,
        type='ImageClassifier',
        backbone=dict(type='ResNet', depth=18),
        neck=dict(type='GlobalAveragePooling'),
        head=dict(type='LinearClsHead', num_classes=10, in_channels=512),
    ),
    teacher_checkpoint='work_dirs/resnet18_digits/epoch_15.pth',
    backbone=dict(num_tokens=8, token_channels=512),  # as in vt-resnet18_digits.py
    head=dict(num_classes=10, in_channels=512, topk=(1,)),
)

train_pipeline = [
    dict(type='Resize', scale=64, interpolation='bicubic'),
    dict(type='RandomCrop', crop_size=64, padding=4),
    dict(type='AutoAugment', policies='imagenet'),
    dict(type='PackInputs'),
]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))

# A batch of 32, not 2048: the learning rate is as much smaller. Ten epochs, not 400: it falls as far in all, and
# weights are averaged over as large a share of the run.
optim_wrapper = dict(optimizer=dict(lr=2.5e-3))
param_scheduler = [
    dict(type='vt.WarmUpLR', start_factor=0.0625, by_epoch=True, length=1, convert_to_iter_based=True),
    dict(type='vt.ExponentialLR', gamma=0.58, of=10, by_epoch=True, begin=1),
]
custom_hooks = [dict(type='EMAHook', momentum=0.08, update_buffers=True)]
train_cfg = dict(max_epochs=10)
auto_scale_lr = dict(base_batch_size=32)
