# DeiT's recipe: AdamW, batch 1024, 20 epochs of warm-up, cosine decay, 300 epochs. Only matrices decay.
optim_wrapper = dict(
    optimizer=dict(type='AdamW', lr=1e-3, weight_decay=0.05),
    paramwise_cfg=dict(norm_decay_mult=0.0, bias_decay_mult=0.0, flat_decay_mult=0.0),
    clip_grad=dict(max_norm=5.0),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=1e-3, by_epoch=True, end=20, convert_to_iter_based=True),
    dict(
        type='CosineAnnealingLR', eta_min=1e-5, by_epoch=True, begin=20, end=300, T_max=280, convert_to_iter_based=True
    ),
]

train_cfg = dict(by_epoch=True, max_epochs=300, val_interval=1)
val_cfg = dict()
test_cfg = dict()

auto_scale_lr = dict(base_batch_size=1024)
