# 2,560 iterations of small images, however many there are: AdamW, a tenth of warm-up, cosine decay.
_base_ = '../../../../configs/_base_/schedules/adamw_bs32-15e.py'

param_scheduler = [
    dict(type='vt.WarmUpLR', by_epoch=False, start_factor=0.01, length=256),
    dict(type='vt.CosineAnnealingLR', by_epoch=False, begin=256),
]

train_cfg = dict(_delete_=True, type='IterBasedTrainLoop', max_iters=2560, val_interval=2560)
