# Images and masks of a data set that Hugging Face's library `datasets` saved by `save_to_disk` (pip install datasets):
# set data_root, its folder, and classes; and splits and columns, if their names differ.
_base_ = 'segmentation_loaders.py'

data_root = 'data/scenes'
classes = ['background', 'object']

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
    dict(type='LoadAnnotations'),  # after Resize: labels keep their original size
    dict(type='PackSegInputs'),
]

# VT's tools insert data_root into data sets that do not set their own.
train_dataloader = dict(
    batch_size=4,
    dataset=dict(
        type='vt.HuggingFaceSegDataset',
        data_root=None,
        split='train',
        image='image',
        mask='mask',
        classes=classes,
        pipeline=train_pipeline,
    ),
)
val_dataloader = dict(
    dataset=dict(
        type='vt.HuggingFaceSegDataset',
        data_root=None,
        split='validation',
        image='image',
        mask='mask',
        classes=classes,
        pipeline=test_pipeline,
    ),
)
test_dataloader = val_dataloader
