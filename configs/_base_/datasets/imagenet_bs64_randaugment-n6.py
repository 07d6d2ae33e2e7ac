# ImageNet-1k with MViT's augmentation: RandAugment draws six operations an image.
_base_ = 'imagenet_bs64_randaugment.py'

train_pipeline = _base_.train_pipeline
train_pipeline[3]['num_policies'] = 6
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
