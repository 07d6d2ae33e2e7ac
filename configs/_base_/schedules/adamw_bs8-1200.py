# 1,200 iterations of small scenes: AdamW, a tenth of warm-up, cosine decay.
optim_wrapper = dict(
    optimizer=dict(type='AdamW', lr=1.5e-3, weight_decay=0.05),
    # Adam's steps have the same size in every entry: in matrices as wide as the tokens they add up to too much.
    paramwise_cfg=dict(
        custom_keys={
            'neck.tokenizers': dict(lr_mult=0.1),
            'neck.relation': dict(lr_mult=0.1),
            'neck.projectors': dict(lr_mult=0.1),
        }
    ),
)
param_scheduler = [
    dict(type='vt.WarmUpLR', by_epoch=False, start_factor=0.01, length=120),
    dict(type='vt.CosineAnnealingLR', by_epoch=False, begin=120),
]

train_cfg = dict(type='IterBasedTrainLoop', max_iters=1200, val_interval=400)
val_cfg = dict()
test_cfg = dict()

auto_scale_lr = dict(base_batch_size=8)
