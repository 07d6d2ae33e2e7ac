# A thousand iterations of small scenes: AdamW, a tenth of warm-up, cosine decay.
optim_wrapper = dict(optimizer=dict(type='AdamW', lr=2e-3, weight_decay=0.05))
param_scheduler = [
    dict(type='LinearLR', by_epoch=False, start_factor=0.01, end=100),
    dict(type='CosineAnnealingLR', by_epoch=False, begin=100, end=1000, T_max=900),
]

train_cfg = dict(type='IterBasedTrainLoop', max_iters=1000, val_interval=500)
val_cfg = dict()
test_cfg = dict()

auto_scale_lr = dict(base_batch_size=16)
