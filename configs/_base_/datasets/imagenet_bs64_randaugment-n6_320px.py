# The same at 320x320.
_base_ = 'imagenet_bs64_randaugment-n6.py'

train_pipeline = _base_.train_pipeline
train_pipeline[1]['scale'] = 320
test_pipeline = _base_.test_pipeline
test_pipeline[1]['scale'] = 365
test_pipeline[2]['crop_size'] = 320

train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
