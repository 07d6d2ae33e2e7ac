# The recommended recipe for one's own images and masks: tuned_adamw.py for 20,000 iterations of batches of 4. The
# backbone has a tenth of the rate, since it starts from trained weights.
_base_ = 'tuned_adamw.py'

optim_wrapper = dict(
    optimizer=dict(type='AdamW', lr=3e-3, weight_decay=0.05),
    paramwise_cfg=dict(custom_keys=dict(backbone=dict(lr_mult=0.1), **_base_.tuned['custom_keys'])),
)
param_scheduler = [
    dict(type='vt.WarmUpLR', by_epoch=False, start_factor=0.01, length=1000),
    dict(type='vt.CosineAnnealingLR', by_epoch=False, begin=1000),
]

train_cfg = dict(type='IterBasedTrainLoop', max_iters=20000, val_interval=2000)
val_cfg = dict()
test_cfg = dict()

auto_scale_lr = dict(base_batch_size=4)
