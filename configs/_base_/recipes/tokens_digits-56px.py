# As tokens_digits.py at 56x56, whose grids of 14 and 7 tokens divide into windows of 7.
_base_ = 'tokens_digits.py'

train_pipeline = [
    dict(type='Resize', scale=56, interpolation='bicubic'),
    dict(type='Rotate', magnitude_range=(0, 15), magnitude_std='inf', pad_val=0, prob=1.0, interpolation='bilinear'),
    dict(type='RandomCrop', crop_size=56, padding=4),
    dict(type='PackInputs'),
]
test_pipeline = [
    dict(type='Resize', scale=56, interpolation='bicubic'),
    dict(type='PackInputs'),
]

train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader

model = dict(backbone=dict(image_size=56))
