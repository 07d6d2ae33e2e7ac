# A classifier of timm on any folder of images: the recipe of `timm:NAME`, which enters the name, its number of channels
# and its preparation of images.
_base_ = 'fine_tune_image-folder.py'

model = dict(
    backbone=dict(type='vt.TimmBackbone', model_name='resnet18.a1_in1k'),
    head=dict(in_channels=512),
)
