# MViT's schedule on Kinetics: AdamW, 512 clips a batch, 30 epochs of warm-up, cosine decay to a hundredth, 200 epochs.
optim_wrapper = dict(
    optimizer=dict(type='AdamW', lr=1.6e-3, weight_decay=0.05),
    clip_grad=dict(max_norm=1.0),
    paramwise_cfg=dict(norm_decay_mult=0.0, bias_decay_mult=0.0, flat_decay_mult=0.0),
)
param_scheduler = [
    dict(type='vt.WarmUpLR', start_factor=1e-2, by_epoch=True, length=30, convert_to_iter_based=True),
    dict(type='vt.CosineAnnealingLR', eta_min=1.6e-5, by_epoch=True, begin=30, convert_to_iter_based=True),
]

train_cfg = dict(by_epoch=True, max_epochs=200, val_interval=10)
val_cfg = dict()
test_cfg = dict()

auto_scale_lr = dict(base_batch_size=512)
