# timm's training script on ImageNet-1k, as the authors of T2T-ViT, TNT, CSWin, DeepViT, ELSA, ViTAE, PS-ViT and LV-ViT
# use it: ten more epochs at the last rate, weights averaged, either interpolation in training, 0.9 of a test image, no
# repeated augmentation; else DeiT's.
_base_ = 'deit_in1k.py'

load, crop, flip, augment, erase, pack = _base_.train_pipeline
hparams = augment.hparams
either = ('bilinear', 'bicubic')
train_pipeline = [
    load,
    dict(type='RandomChoice', transforms=[[crop | dict(interpolation=each)] for each in either]),
    flip,
    dict(
        type='RandomChoice',
        transforms=[[augment | dict(hparams=hparams | dict(interpolation=each))] for each in either],
    ),
    erase,
    pack,
]
test_pipeline = _base_.test_pipeline
test_pipeline[1]['scale'] = 248

train_dataloader = dict(
    sampler=dict(_delete_=True, type='DefaultSampler', shuffle=True), dataset=dict(pipeline=train_pipeline)
)
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader

param_scheduler = _base_.param_scheduler
param_scheduler[1]['cool_down'] = 10
train_cfg = dict(max_epochs=310)
custom_hooks = [dict(type='EMAHook', momentum=4e-5, update_buffers=True)]
