# Training a video model on any folder of videos: clips of 16 frames, every 4th, eight a batch, 30 epochs; MViT's recipe
# on Kinetics with its rate of 512 clips for eight, and without augmentation by policies.
_base_ = ['../schedules/adamw_bs512-200e.py', '../default_runtime.py']

data_root = 'data/videos'
data_preprocessor = dict(type='vt.ClipPreprocessor', mean=[114.75] * 3, std=[57.375] * 3, to_rgb=True)
load = dict(type='vt.LoadClips', clip_length=16, frame_stride=4)
augment = [
    dict(type='RandomResizedCrop', scale=224, interpolation='bicubic'),
    dict(type='RandomFlip', prob=0.5, direction='horizontal'),
]
train_pipeline = [load, dict(type='vt.SameForAllFrames', transforms=augment), dict(type='vt.PackClips')]
crop = [dict(type='ResizeEdge', scale=256, edge='short'), dict(type='CenterCrop', crop_size=224)]
test_pipeline = [
    dict(type='vt.LoadClips', clip_length=16, frame_stride=4, num_clips=1),
    dict(type='vt.SameForAllFrames', transforms=crop),
    dict(type='vt.PackClips'),
]
videos = dict(type='vt.VideoDataset', data_root=None)
train_dataloader = dict(
    batch_size=8,
    num_workers=4,
    drop_last=True,
    sampler=dict(type='DefaultSampler', shuffle=True),
    dataset=dict(data_prefix='train', pipeline=train_pipeline, **videos),
)
val_dataloader = dict(
    batch_size=8,
    num_workers=4,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(data_prefix='val', pipeline=test_pipeline, **videos),
)
test_dataloader = val_dataloader
val_evaluator = dict(type='Accuracy', topk=(1,))
test_evaluator = val_evaluator

optim_wrapper = dict(optimizer=dict(lr=2.5e-5))  # 1.6e-3 * 8 / 512
param_scheduler = [
    dict(type='vt.WarmUpLR', start_factor=1e-2, by_epoch=True, length=2, convert_to_iter_based=True),
    dict(type='vt.CosineAnnealingLR', by_epoch=True, begin=2, convert_to_iter_based=True),
]
train_cfg = dict(max_epochs=30, val_interval=1)
auto_scale_lr = dict(base_batch_size=8)
