# VT-ResNet-18 on images with several labels each, listed in <data_root>/train.csv and val.csv, with the tuned recipe.
_base_ = 'vt-resnet18.py'

labels = dict(_delete_=True, type='vt.MultiLabelImages', data_root=None)
train_dataloader = dict(
    dataset=dict(ann_file='train.csv', data_prefix='train', pipeline=_base_.train_pipeline, **labels)
)
val_dataloader = dict(dataset=dict(ann_file='val.csv', data_prefix='val', pipeline=_base_.test_pipeline, **labels))
test_dataloader = val_dataloader
val_evaluator = [dict(type='AveragePrecision'), dict(type='MultiLabelMetric', thr=0.5)]
test_evaluator = val_evaluator
model = dict(head=dict(_delete_=True, type='MultiLabelLinearClsHead', num_classes='auto', in_channels=1024))
