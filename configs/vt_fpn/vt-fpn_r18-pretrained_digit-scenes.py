# VT-FPN on the embedded scenes, on a ResNet-18 at half width pretrained on five of the digits.
# Scores: docs/training.md.
# vt train resnet18-half_five-digits
# vt train vt-fpn_r18-pretrained_digit-scenes
_base_ = 'vt-fpn_r18_digit-scenes.py'

checkpoint = 'work_dirs/resnet18-half_five-digits/epoch_10.pth'
model = dict(backbone=dict(init_cfg=dict(_delete_=True, type='Pretrained', checkpoint=checkpoint, prefix='backbone.')))
