# Images with several labels each: <data_root>/train.csv and val.csv, of the images in <data_root>/train and val.
# Set data_root.
_base_ = 'image_folder_bs32.py'

train_dataloader = dict(
    dataset=dict(
        _delete_=True,
        type='vt.MultiLabelImages',
        data_root=None,
        ann_file='train.csv',
        data_prefix='train',
        pipeline={{_base_.train_pipeline}},
    )
)
val_dataloader = dict(
    dataset=dict(
        _delete_=True,
        type='vt.MultiLabelImages',
        data_root=None,
        ann_file='val.csv',
        data_prefix='val',
        pipeline={{_base_.test_pipeline}},
    )
)
test_dataloader = val_dataloader

val_evaluator = [
    dict(type='AveragePrecision'),
    dict(type='MultiLabelMetric', thr=0.5),
]
test_evaluator = val_evaluator
