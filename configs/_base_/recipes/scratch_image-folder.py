# Training a transformer from scratch on any folder of images: the recipe of fine-tuning with one rate for all layers,
# 90 epochs and five of warm-up. The rate is the one found on Fashion-MNIST for most of the survey's models.
_base_ = 'fine_tune_image-folder.py'

optim_wrapper = dict(
    constructor='DefaultOptimWrapperConstructor',
    paramwise_cfg=dict(
        _delete_=True, norm_decay_mult=0.0, bias_decay_mult=0.0, flat_decay_mult=0.0, bypass_duplicate=True
    ),
)
param_scheduler = [
    dict(type='vt.WarmUpLR', start_factor=0.01, by_epoch=True, length=5, convert_to_iter_based=True),
    dict(type='vt.CosineAnnealingLR', by_epoch=True, begin=5, convert_to_iter_based=True),
]
train_cfg = dict(max_epochs=90)
