# Fine-tuning a transformer on any folder of images: AdamW, 32 images a batch, 30 epochs, warm-up of two, cosine decay;
# each layer has 0.8 of the rate of the next. Images are resized as those of the weights, bicubically by Pillow.
_base_ = ['../datasets/image_folder_bs32.py', '../default_runtime.py']

train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='RandomResizedCrop', scale=224, interpolation='bicubic', backend='pillow'),
    dict(type='RandomFlip', prob=0.5, direction='horizontal'),
    dict(type='PackInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='ResizeEdge', scale=248, edge='short', interpolation='bicubic', backend='pillow'),
    dict(type='CenterCrop', crop_size=224),
    dict(type='PackInputs'),
]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader

model = dict(
    type='ImageClassifier',
    head=dict(
        type='LinearClsHead',
        num_classes='auto',
        in_channels=384,
        loss=dict(type='LabelSmoothLoss', label_smooth_val=0.1, mode='original'),
        topk=(1,),
    ),
)

optim_wrapper = dict(
    constructor='LearningRateDecayOptimWrapperConstructor',
    optimizer=dict(type='AdamW', lr=3e-4, weight_decay=0.05),
    paramwise_cfg=dict(layer_decay_rate=0.8, norm_decay_mult=0.0, bias_decay_mult=0.0, flat_decay_mult=0.0),
)
param_scheduler = [
    dict(type='vt.WarmUpLR', start_factor=0.01, by_epoch=True, length=2, convert_to_iter_based=True),
    dict(type='vt.CosineAnnealingLR', by_epoch=True, begin=2, convert_to_iter_based=True),
]

train_cfg = dict(by_epoch=True, max_epochs=30, val_interval=1)
val_cfg = dict()
test_cfg = dict()

auto_scale_lr = dict(base_batch_size=32)
