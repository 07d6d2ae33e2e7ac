# Kinetics-400, clips of 16 frames, every 4th, at 224x224, with MViT's augmentation; its test takes 5 clips of a video.
# data/kinetics400/{train.csv,val.csv,train/,val/}: Kinetics' lists, and videos in class folders or not (docs/videos.md)
data_root = 'data/kinetics400'

data_preprocessor = dict(type='vt.ClipPreprocessor', num_classes=400, mean=[114.75] * 3, std=[57.375] * 3, to_rgb=True)

train_pipeline = [
    dict(type='vt.LoadClips', clip_length=16, frame_stride=4),
    dict(
        type='vt.SameForAllFrames',
        transforms=[
            dict(type='RandomResizedCrop', scale=224, interpolation='bicubic'),
            dict(type='RandomFlip', prob=0.5, direction='horizontal'),
            dict(
                type='RandAugment',
                policies='timm_increasing',
                num_policies=4,
                total_level=10,
                magnitude_level=7,
                magnitude_std=0.5,
                hparams=dict(pad_val=[115, 115, 115], interpolation='bicubic'),
            ),
            dict(
                type='RandomErasing',
                erase_prob=0.25,
                mode='rand',
                min_area_ratio=0.02,
                max_area_ratio=1 / 3,
                fill_color=[114.75] * 3,
                fill_std=[57.375] * 3,
            ),
        ],
    ),
    dict(type='vt.PackClips'),
]
centre_crop = dict(
    type='vt.SameForAllFrames',
    transforms=[dict(type='ResizeEdge', scale=256, edge='short'), dict(type='CenterCrop', crop_size=224)],
)
val_pipeline = [
    dict(type='vt.LoadClips', clip_length=16, frame_stride=4, num_clips=1),
    centre_crop,
    dict(type='vt.PackClips'),
]
test_pipeline = [
    dict(type='vt.LoadClips', clip_length=16, frame_stride=4, num_clips=5),
    centre_crop,
    dict(type='vt.PackClips'),
]

train_dataloader = dict(
    batch_size=8,
    num_workers=8,
    drop_last=True,
    sampler=dict(type='RepeatAugSampler', num_repeats=2),  # an epoch takes half of the videos, twice each
    dataset=dict(
        type='vt.VideoDataset',
        data_root=data_root,
        ann_file='train.csv',
        data_prefix='train',
        pipeline=train_pipeline,
    ),
)
val_dataloader = dict(
    batch_size=8,
    num_workers=8,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        type='vt.VideoDataset',
        data_root=data_root,
        ann_file='val.csv',
        data_prefix='val',
        pipeline=val_pipeline,
    ),
)
test_dataloader = dict(
    batch_size=2,  # of 5 clips each
    num_workers=8,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        type='vt.VideoDataset',
        data_root=data_root,
        ann_file='val.csv',
        data_prefix='val',
        pipeline=test_pipeline,
    ),
)

val_evaluator = dict(type='Accuracy', topk=(1, 5))
test_evaluator = val_evaluator
