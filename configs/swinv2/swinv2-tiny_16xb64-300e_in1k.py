# Swin v2-T at 256x256 on ImageNet-1k with DeiT's recipe.
# vt train swinv2-tiny_16xb64-300e_in1k
_base_ = ['../_base_/recipes/deit_in1k.py', '../_base_/models/swinv2-tiny.py']

model = _base_.architecture
model['backbone']['image_size'] = 256

train_pipeline = _base_.train_pipeline
train_pipeline[1]['scale'] = 256
test_pipeline = _base_.test_pipeline
test_pipeline[1]['scale'] = 292
test_pipeline[2]['crop_size'] = 256
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
