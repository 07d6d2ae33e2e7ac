# DeiT's schedule: AdamW, batch 1024, 5 epochs of warm-up, cosine decay, 300 epochs; positions and norms don't decay.
optim_wrapper = dict(
    optimizer=dict(type='AdamW', lr=1e-3, weight_decay=0.05),
    paramwise_cfg=dict(
        norm_decay_mult=0.0,
        bias_decay_mult=0.0,
        flat_decay_mult=0.0,
        custom_keys={
            'class_tokens': dict(decay_mult=0.0),
            'position.vectors': dict(decay_mult=0.0),
            'bias.table': dict(decay_mult=0.0),
            'bias.mlp': dict(decay_mult=0.0),
            'log_scale': dict(decay_mult=0.0),
            'cls_token': dict(decay_mult=0.0),  # this and the next two are MMPretrain's TNT
            'patch_pos': dict(decay_mult=0.0),
            'pixel_pos': dict(decay_mult=0.0),
        },
    ),
)
param_scheduler = [
    dict(type='vt.WarmUpLR', start_factor=1e-3, by_epoch=True, length=5, convert_to_iter_based=True),
    dict(type='vt.CosineAnnealingLR', eta_min=1e-5, by_epoch=True, begin=5, convert_to_iter_based=True),
]

train_cfg = dict(by_epoch=True, max_epochs=300, val_interval=1)
val_cfg = dict()
test_cfg = dict()

auto_scale_lr = dict(base_batch_size=1024)
