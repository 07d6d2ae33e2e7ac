# LIP, single-person parsing (20 classes), in data/lip/{train,val}/{images,segmentations}.
_base_ = 'segmentation_loaders.py'

data_root = 'data/lip'

crop_size = (473, 473)
train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations'),
    dict(type='RandomResize', scale=crop_size, ratio_range=(0.75, 1.5), keep_ratio=True),
    dict(type='RandomCrop', crop_size=crop_size),
    # arms, legs and shoes change sides in a mirror
    dict(type='RandomFlip', prob=0.5, swap_seg_labels=[(14, 15), (16, 17), (18, 19)]),
    dict(type='PhotoMetricDistortion'),
    dict(type='PackSegInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='Resize', scale=crop_size, keep_ratio=False),
    dict(type='LoadAnnotations'),  # after Resize: labels keep their original size
    dict(type='PackSegInputs'),
]

train_dataloader = dict(
    batch_size=24,
    num_workers=8,
    dataset=dict(
        type='LIPDataset',
        data_root=data_root,
        data_prefix=dict(img_path='train/images', seg_map_path='train/segmentations'),
        pipeline=train_pipeline,
    ),
)
val_dataloader = dict(
    dataset=dict(
        type='LIPDataset',
        data_root=data_root,
        data_prefix=dict(img_path='val/images', seg_map_path='val/segmentations'),
        pipeline=test_pipeline,
    ),
)
test_dataloader = val_dataloader
