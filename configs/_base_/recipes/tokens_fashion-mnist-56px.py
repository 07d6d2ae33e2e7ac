# As tokens_fashion-mnist.py, with images of 28x28 without a border, enlarged to 56x56 after the augmentations: grids
# of 14 and 7 tokens, which windows of 7 divide.
_base_ = 'tokens_fashion-mnist.py'

crop, *augmentations, pack = _base_.train_pipeline
crop['crop_size'] = 28
enlarge = dict(type='Resize', scale=56, interpolation='bicubic')

train_dataloader = dict(dataset=dict(edge=0, pipeline=[crop, *augmentations, enlarge, pack]))
val_dataloader = dict(dataset=dict(edge=0, pipeline=[enlarge, pack]))
test_dataloader = val_dataloader

model = dict(backbone=dict(image_size=56))
