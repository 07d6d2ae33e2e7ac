# The same at 56x56, whose grids of 14 and 7 tokens are whole windows of 7.
_base_ = '_twin-digits.py'

model = dict(backbone=dict(image_size=56))

pipeline = [dict(type='Resize', scale=56, interpolation='bicubic'), dict(type='PackInputs')]
train_dataloader = dict(dataset=dict(pipeline=pipeline))
val_dataloader = dict(dataset=dict(pipeline=pipeline))
test_dataloader = val_dataloader
