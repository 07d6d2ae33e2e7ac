# ImageNet-1k, 256 images a process, with AutoAugment's policy for ImageNet (paper, section 5.2).
_base_ = 'imagenet_bs32.py'

train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='RandomResizedCrop', scale=224),
    dict(type='RandomFlip', prob=0.5, direction='horizontal'),
    dict(type='AutoAugment', policies='imagenet'),
    dict(type='PackInputs'),
]

train_dataloader = dict(batch_size=256, num_workers=8, dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(batch_size=256)
test_dataloader = val_dataloader
