# Common settings of the relational tasks, embedded: nothing to download (8,192 images train, 2,048 test).
data_preprocessor = dict(num_classes=2, mean=[127.5] * 3, std=[63.75] * 3, to_rgb=False)

train_dataloader = dict(
    batch_size=32,
    num_workers=0,  # images are made in memory
    persistent_workers=False,
    drop_last=True,
    sampler=dict(type='DefaultSampler', shuffle=True),
    dataset=dict(split='train', num_images=8192, pipeline=[dict(type='PackInputs')]),
)
val_dataloader = dict(
    batch_size=32,
    num_workers=0,
    persistent_workers=False,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(split='test', num_images=2048, pipeline=[dict(type='PackInputs')]),
)
test_dataloader = val_dataloader

val_evaluator = dict(type='Accuracy', topk=(1,))
test_evaluator = val_evaluator
