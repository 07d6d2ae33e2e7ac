# A small classifier with everything that draws random numbers or keeps a state: augmentation in two workers, Mixup and
# CutMix, dropout, stochastic depth, a moving average, momentum, clipped and accumulated gradients, a warm-up.
# An epoch has five iterations, an update of the weights takes two.
_base_ = '../../../configs/vt_resnet/vt-resnet18_digits.py'

model = dict(
    backbone=dict(base_channels=8, stem_channels=8, num_tokens=4, token_channels=32, drop_path_rate=0.2),
    head=dict(_delete_=True, type='vt.DropoutLinearClsHead', num_classes=10, in_channels=32, dropout=0.3, topk=(1,)),
    train_cfg=dict(augments=[dict(type='Mixup', alpha=0.2), dict(type='CutMix', alpha=1.0)]),
)
train_pipeline = [
    dict(type='Resize', scale=32),
    dict(type='RandomCrop', crop_size=32, padding=4),
    dict(type='AutoAugment', policies='imagenet'),
    dict(type='RandomErasing', erase_prob=0.5),
    dict(type='PackInputs'),
]
train_dataloader = dict(batch_size=8, num_workers=2, persistent_workers=True)
train_dataloader['dataset'] = dict(indices=40, pipeline=train_pipeline)
val_dataloader = dict(dataset=dict(indices=16, pipeline=[dict(type='Resize', scale=32), dict(type='PackInputs')]))
test_dataloader = val_dataloader
optim_wrapper = dict(clip_grad=dict(max_norm=1.0), accumulative_counts=2)
custom_hooks = [dict(type='EMAHook', momentum=0.1, update_buffers=True)]
default_hooks = dict(checkpoint=dict(max_keep_ckpts=2), logger=dict(interval=1))
train_cfg = dict(max_epochs=6, val_interval=2)
randomness = dict(deterministic=True)  # for a GPU; a CPU repeats in any case
