# Fashion-MNIST at 32x32, with a black edge of two pixels. Looked for in data/fashion-mnist, then where Debian's package
# dataset-fashion-mnist puts it; data_root names another folder. Nothing is fetched.
# Settings are chosen on 5,000 of the training images: train_dataloader.dataset.split=fit
# val_dataloader.dataset.split=held-out. The test images are read once, after the last epoch.
data_root = None

data_preprocessor = dict(num_classes=10, mean=[72.94] * 3, std=[90.02] * 3, to_rgb=False)

train_pipeline = [
    dict(type='RandomCrop', crop_size=32, padding=4),
    dict(type='RandomFlip', prob=0.5, direction='horizontal'),
    dict(
        type='RandomErasing',
        erase_prob=0.5,
        min_area_ratio=0.02,
        max_area_ratio=0.4,
        aspect_range=(0.3, 1 / 0.3),
        mode='const',
        fill_color=[73] * 3,
    ),
    dict(type='PackInputs'),
]
test_pipeline = [
    dict(type='Resize', scale=32),  # of other images
    dict(type='PackInputs'),
]

train_dataloader = dict(
    batch_size=256,
    num_workers=0,  # images are in memory
    persistent_workers=False,
    drop_last=True,
    collate_fn=dict(type='default_collate'),  # one tensor: the usual list of 256 would be copied to a GPU one by one
    sampler=dict(type='DefaultSampler', shuffle=True),
    dataset=dict(type='vt.FashionMNIST', data_root=data_root, split='train', edge=2, pipeline=train_pipeline),
)
val_dataloader = dict(
    batch_size=256,
    num_workers=0,
    persistent_workers=False,
    collate_fn=dict(type='default_collate'),
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(type='vt.FashionMNIST', data_root=data_root, split='test', edge=2, pipeline=test_pipeline),
)
test_dataloader = val_dataloader

val_evaluator = dict(type='Accuracy', topk=(1,))
test_evaluator = val_evaluator
