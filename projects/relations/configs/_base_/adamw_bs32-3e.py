# Three epochs of the twin digits, 768 iterations: AdamW, 100 iterations of warm-up, cosine decay.
optim_wrapper = dict(optimizer=dict(type='AdamW', lr=1e-3, weight_decay=0.05))
param_scheduler = [
    dict(type='vt.WarmUpLR', by_epoch=False, start_factor=0.01, length=100),
    dict(type='vt.CosineAnnealingLR', by_epoch=False, begin=100),
]

train_cfg = dict(by_epoch=True, max_epochs=3, val_interval=1)
val_cfg = dict()
test_cfg = dict()

auto_scale_lr = dict(base_batch_size=32)
