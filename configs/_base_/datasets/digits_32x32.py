# The embedded digits at 32x32: four times their own resolution.
_base_ = 'digits.py'

train_pipeline = [
    dict(type='Resize', scale=32, interpolation='bicubic'),
    dict(type='Rotate', magnitude_range=(0, 15), magnitude_std='inf', pad_val=0, prob=1.0, interpolation='bilinear'),
    dict(type='RandomCrop', crop_size=32, padding=2),
    dict(type='PackInputs'),
]
test_pipeline = [
    dict(type='Resize', scale=32, interpolation='bicubic'),
    dict(type='PackInputs'),
]

train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
