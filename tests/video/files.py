# A tiny network on the videos of data/: all that draws random numbers, in two workers. An epoch has 5 iterations.
_base_ = ['../../configs/_base_/schedules/adamw_bs32-10e.py', '../../configs/_base_/default_runtime.py']

custom_imports = dict(imports=['vt', 'video.tiny_video_network'])
data_preprocessor = dict(type='vt.ClipPreprocessor', num_classes=2, mean=[114.75] * 3, std=[57.375] * 3, to_rgb=True)
model = dict(
    type='vt.VideoClassifier',
    backbone=dict(type='mmengine.TinyVideoNetwork'),
    head=dict(type='vt.DropoutLinearClsHead', num_classes=2, in_channels=8, dropout=0.3, topk=(1,)),
    train_cfg=dict(augments=[dict(type='Mixup', alpha=0.8), dict(type='CutMix', alpha=1.0)]),
)
train_pipeline = [
    dict(type='vt.LoadClips', clip_length=4, frame_stride=2),
    dict(
        type='vt.SameForAllFrames',
        transforms=[
            dict(type='RandomResizedCrop', scale=24),
            dict(type='RandomFlip', prob=0.5),
            dict(
                type='RandAugment', policies='timm_increasing', num_policies=4, total_level=10, magnitude_level=7,
                magnitude_std=0.5,
            ),
            dict(type='RandomErasing', erase_prob=0.25, mode='rand'),
        ],
    ),
    dict(type='vt.PackClips'),
]  # fmt: skip
resize = dict(type='vt.SameForAllFrames', transforms=[dict(type='ResizeEdge', scale=24)])
crop = dict(type='vt.SameForAllFrames', transforms=[dict(type='CenterCrop', crop_size=24)])
val_pipeline = [dict(type='vt.LoadClips', clip_length=4, frame_stride=2, num_clips=1), resize, crop]
val_pipeline += [dict(type='vt.PackClips')]
test_pipeline = [dict(type='vt.LoadClips', clip_length=4, frame_stride=2, num_clips=5), resize]
test_pipeline += [dict(type='vt.ThreeCrops', crop_size=24), dict(type='vt.PackClips')]

dataset = dict(type='vt.VideoDataset', data_root='data', data_prefix='videos')
train_dataloader = dict(
    batch_size=4,
    num_workers=2,
    persistent_workers=True,
    sampler=dict(type='RepeatAugSampler', num_repeats=2),
    dataset=dict(dataset, pipeline=train_pipeline),
)
in_order = dict(batch_size=4, num_workers=0, sampler=dict(type='DefaultSampler', shuffle=False))
val_dataloader = dict(in_order, dataset=dict(dataset, pipeline=val_pipeline))
test_dataloader = dict(in_order, dataset=dict(dataset, pipeline=test_pipeline))
val_evaluator = test_evaluator = dict(type='Accuracy', topk=(1,))
default_hooks = dict(checkpoint=dict(max_keep_ckpts=2), logger=dict(interval=1))
train_cfg = dict(max_epochs=3)
