# scikit-learn's handwritten digits at 64x64, embedded: nothing to download (1,437 train, 360 test).
data_preprocessor = dict(num_classes=10, mean=[127.5] * 3, std=[127.5] * 3, to_rgb=False)

train_pipeline = [
    dict(type='Resize', scale=64, interpolation='bicubic'),
    dict(type='Rotate', magnitude_range=(0, 15), magnitude_std='inf', pad_val=0, prob=1.0, interpolation='bilinear'),
    dict(type='RandomCrop', crop_size=64, padding=4),
    dict(type='PackInputs'),
]
test_pipeline = [
    dict(type='Resize', scale=64, interpolation='bicubic'),
    dict(type='PackInputs'),
]

train_dataloader = dict(
    batch_size=32,
    num_workers=0,  # images are in memory
    persistent_workers=False,
    drop_last=True,
    sampler=dict(type='DefaultSampler', shuffle=True),
    dataset=dict(type='vt.Digits', split='train', pipeline=train_pipeline),
)
val_dataloader = dict(
    batch_size=32,
    num_workers=0,
    persistent_workers=False,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(type='vt.Digits', split='test', pipeline=test_pipeline),
)
test_dataloader = val_dataloader

val_evaluator = dict(type='Accuracy', topk=(1,))
test_evaluator = val_evaluator
