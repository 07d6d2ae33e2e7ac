# Three epochs of the twin digits, 768 iterations: AdamW, 100 iterations of warm-up, cosine decay.
optim_wrapper = dict(optimizer=dict(type='AdamW', lr=1e-3, weight_decay=0.05))
param_scheduler = [
    dict(type='LinearLR', by_epoch=False, start_factor=0.01, end=100),
    dict(type='CosineAnnealingLR', by_epoch=False, begin=100, end=768, T_max=668),
]

train_cfg = dict(by_epoch=True, max_epochs=3, val_interval=1)
val_cfg = dict()
test_cfg = dict()

auto_scale_lr = dict(base_batch_size=32)
