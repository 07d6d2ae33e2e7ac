# Any images with a mask each: <data_root>/images/{train,val}/NAME.jpg and <data_root>/masks/{train,val}/NAME.png.
# Set data_root, and metainfo.classes of each data set.
_base_ = 'segmentation_loaders.py'

data_root = 'data/scenes'
crop_size = (512, 512)
train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations'),
    dict(type='RandomResize', scale=(2048, 512), ratio_range=(0.5, 2.0), keep_ratio=True),
    dict(type='RandomCrop', crop_size=crop_size, cat_max_ratio=0.75),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PhotoMetricDistortion'),
    dict(type='PackSegInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='Resize', scale=(2048, 512), keep_ratio=True),
    dict(type='LoadAnnotations'),  # after Resize: labels are compared at their own size
    dict(type='PackSegInputs'),
]

# VT's tools enter data_root where a data set leaves its own open.
train_dataloader = dict(
    batch_size=4,
    dataset=dict(
        type='vt.ImagesAndMasks',
        data_root=None,
        data_prefix=dict(img_path='images/train', seg_map_path='masks/train'),
        metainfo=dict(classes=('background', 'object')),
        pipeline=train_pipeline,
    ),
)
val_dataloader = dict(
    dataset=dict(
        type='vt.ImagesAndMasks',
        data_root=None,
        data_prefix=dict(img_path='images/val', seg_map_path='masks/val'),
        metainfo=dict(classes=('background', 'object')),
        pipeline=test_pipeline,
    ),
)
test_dataloader = val_dataloader
