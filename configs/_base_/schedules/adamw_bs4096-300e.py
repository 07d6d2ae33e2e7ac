# MViT's schedule on ImageNet: AdamW, batch 4096, 70 epochs of warm-up, cosine decay, 300 epochs.
optim_wrapper = dict(
    optimizer=dict(type='AdamW', lr=4e-3, weight_decay=0.05),  # 5e-4 for 512 images
    paramwise_cfg=dict(norm_decay_mult=0.0, bias_decay_mult=0.0, flat_decay_mult=0.0),
)
param_scheduler = [
    dict(type='vt.WarmUpLR', start_factor=1e-5, by_epoch=True, length=70, convert_to_iter_based=True),
    dict(type='vt.CosineAnnealingLR', eta_min=1.6e-5, by_epoch=True, begin=70, convert_to_iter_based=True),
]

train_cfg = dict(by_epoch=True, max_epochs=300, val_interval=1)
val_cfg = dict()
test_cfg = dict()

auto_scale_lr = dict(base_batch_size=4096)
