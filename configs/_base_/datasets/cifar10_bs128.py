# CIFAR-10, 32x32. Expected in data/cifar10; with download=True in each data set, MMPretrain downloads it.
data_root = 'data/cifar10'

data_preprocessor = dict(num_classes=10, mean=[125.307, 122.961, 113.8575], std=[51.5865, 50.847, 51.255], to_rgb=False)

train_pipeline = [
    dict(type='RandomCrop', crop_size=32, padding=4),
    dict(type='RandomFlip', prob=0.5, direction='horizontal'),
    dict(type='PackInputs'),
]

train_dataloader = dict(
    batch_size=128,
    num_workers=2,
    drop_last=True,
    sampler=dict(type='DefaultSampler', shuffle=True),
    dataset=dict(type='CIFAR10', data_root=data_root, split='train', download=False, pipeline=train_pipeline),
)
val_dataloader = dict(
    batch_size=128,
    num_workers=2,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(type='CIFAR10', data_root=data_root, split='test', download=False, pipeline=[dict(type='PackInputs')]),
)
test_dataloader = val_dataloader

val_evaluator = dict(type='Accuracy', topk=(1,))
test_evaluator = val_evaluator
