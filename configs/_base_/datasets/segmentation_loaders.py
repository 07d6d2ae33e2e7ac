# Data loaders and evaluators of segmentation, for all data sets.
train_dataloader = dict(num_workers=4, sampler=dict(type='InfiniteSampler', shuffle=True))
val_dataloader = dict(batch_size=1, num_workers=4, sampler=dict(type='DefaultSampler', shuffle=False))
test_dataloader = val_dataloader

val_evaluator = dict(type='IoUMetric', iou_metrics=['mIoU'])
test_evaluator = val_evaluator
