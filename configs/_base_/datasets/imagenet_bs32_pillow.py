# ImageNet-1k at 224x224, resized by Pillow as in torchvision's recipes.
_base_ = 'imagenet_bs32.py'

train_pipeline = _base_.train_pipeline
train_pipeline[1]['backend'] = 'pillow'
test_pipeline = _base_.test_pipeline
test_pipeline[1]['backend'] = 'pillow'

train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
