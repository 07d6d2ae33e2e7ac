# Fifteen epochs of small data: AdamW, one epoch of warm-up, cosine decay.
optim_wrapper = dict(optimizer=dict(type='AdamW', lr=1e-3, weight_decay=0.05))
param_scheduler = [
    dict(type='vt.WarmUpLR', start_factor=0.01, by_epoch=True, length=1, convert_to_iter_based=True),
    dict(type='vt.CosineAnnealingLR', by_epoch=True, begin=1, convert_to_iter_based=True),
]

train_cfg = dict(by_epoch=True, max_epochs=15, val_interval=1)
val_cfg = dict()
test_cfg = dict()

auto_scale_lr = dict(base_batch_size=32)
