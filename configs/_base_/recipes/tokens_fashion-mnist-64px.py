# As tokens_fashion-mnist.py with images enlarged to 64x64 after the augmentations.
_base_ = 'tokens_fashion-mnist.py'

enlarge = dict(type='Resize', scale=64, interpolation='bicubic')
pack = dict(type='PackInputs')

train_dataloader = dict(dataset=dict(pipeline=[*_base_.train_pipeline[:-1], enlarge, pack]))
val_dataloader = dict(dataset=dict(pipeline=[enlarge, pack]))
test_dataloader = val_dataloader

model = dict(backbone=dict(image_size=64))
