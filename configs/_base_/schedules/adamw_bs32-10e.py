# Ten epochs of small data: AdamW, one epoch of warm-up, cosine decay.
_base_ = 'adamw_bs32-15e.py'

param_scheduler = [
    dict(type='LinearLR', start_factor=0.01, by_epoch=True, end=1, convert_to_iter_based=True),
    dict(type='CosineAnnealingLR', by_epoch=True, begin=1, end=10, T_max=9, convert_to_iter_based=True),
]

train_cfg = dict(max_epochs=10)
