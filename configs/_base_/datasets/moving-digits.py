# Two digits that move one after the other, 8 frames of 32x32, embedded: nothing to download (2,048 train, 2,048 test).
# The class is which moves first and where each goes: 8 classes, and any one frame is as likely in each.
data_preprocessor = dict(type='vt.ClipPreprocessor', num_classes=8, mean=[127.5] * 3, std=[63.75] * 3, to_rgb=False)

train_dataloader = dict(
    batch_size=32,
    num_workers=0,  # videos are made in memory
    persistent_workers=False,
    drop_last=True,
    sampler=dict(type='DefaultSampler', shuffle=True),
    dataset=dict(type='vt.MovingDigits', split='train', num_videos=2048, pipeline=[dict(type='vt.PackClips')]),
)
val_dataloader = dict(
    batch_size=32,
    num_workers=0,
    persistent_workers=False,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(type='vt.MovingDigits', split='test', num_videos=2048, pipeline=[dict(type='vt.PackClips')]),
)
test_dataloader = val_dataloader  # .dataset.shuffle_frames=True: the same frames in another order

val_evaluator = dict(type='Accuracy', topk=(1,))
test_evaluator = val_evaluator
