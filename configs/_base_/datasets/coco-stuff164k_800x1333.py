# COCO-Stuff 164k (171 classes) in MMSegmentation's layout, data/coco_stuff164k/{images,annotations}/{train,val}2017.
# Sizes as in detectron2: the shorter edge 640 to 800 in training and 800 in the test, the longer at most 1333.
_base_ = 'segmentation_loaders.py'

data_root = 'data/coco_stuff164k'

train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations'),
    dict(
        type='RandomChoiceResize',
        scales=[640, 672, 704, 736, 768, 800],
        resize_type='ResizeShortestEdge',
        max_size=1333,
    ),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PackSegInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='Resize', scale=(1333, 800), keep_ratio=True),
    dict(type='LoadAnnotations'),  # after Resize: labels keep their original size
    dict(type='PackSegInputs'),
]

train_dataloader = dict(
    batch_size=8,
    dataset=dict(
        type='COCOStuffDataset',
        data_root=data_root,
        data_prefix=dict(img_path='images/train2017', seg_map_path='annotations/train2017'),
        pipeline=train_pipeline,
    ),
)
val_dataloader = dict(
    dataset=dict(
        type='COCOStuffDataset',
        data_root=data_root,
        data_prefix=dict(img_path='images/val2017', seg_map_path='annotations/val2017'),
        pipeline=test_pipeline,
    ),
)
test_dataloader = val_dataloader
