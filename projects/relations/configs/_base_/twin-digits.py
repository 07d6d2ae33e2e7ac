# Four handwritten digits at 32x32, two of them alike, embedded: nothing to download (8,192 train, 2,048 test).
data_preprocessor = dict(num_classes=10, mean=[127.5] * 3, std=[63.75] * 3, to_rgb=False)

train_dataloader = dict(
    batch_size=32,
    num_workers=0,  # images are made in memory
    persistent_workers=False,
    drop_last=True,
    sampler=dict(type='DefaultSampler', shuffle=True),
    dataset=dict(type='vt.TwinDigits', split='train', num_images=8192, pipeline=[dict(type='PackInputs')]),
)
val_dataloader = dict(
    batch_size=32,
    num_workers=0,
    persistent_workers=False,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(type='vt.TwinDigits', split='test', num_images=2048, pipeline=[dict(type='PackInputs')]),
)
test_dataloader = val_dataloader

val_evaluator = dict(type='Accuracy', topk=(1,))
test_evaluator = val_evaluator
