# A small segmentor in a loop over iterations, with augmentation, dropout, a moving average and a poly schedule.
_base_ = '../../../configs/vt_fpn/vt-fpn_r18_digit-scenes.py'

model = dict(
    backbone=dict(stem_channels=8, base_channels=8),
    neck=dict(in_channels=[8, 16, 32, 64], out_channels=16, num_tokens=4, token_channels=32),
    decode_head=dict(in_channels=[16, 16, 16, 16], channels=16, dropout_ratio=0.2),
)
train_pipeline = [
    dict(type='RandomCrop', crop_size=(64, 64), cat_max_ratio=0.75),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PhotoMetricDistortion'),
    dict(type='PackSegInputs'),
]
train_dataloader = dict(
    batch_size=4, num_workers=1, persistent_workers=True, dataset=dict(num_scenes=24, pipeline=train_pipeline)
)
val_dataloader = dict(batch_size=2, dataset=dict(num_scenes=4))
test_dataloader = val_dataloader
param_scheduler = [dict(type='PolyLR', by_epoch=False, power=0.9, end=30)]
custom_hooks = [dict(type='EMAHook', momentum=0.1)]
default_hooks = dict(checkpoint=dict(interval=4, max_keep_ckpts=1), logger=dict(interval=1))
train_cfg = dict(max_iters=30, val_interval=10)
