# VT-FPN with the tuned recipe on the embedded scenes, on a ResNet-18 at half width pretrained on five digits.
# Scores: docs/training.md.
# vt train resnet18-half_five-digits
# vt train vt-fpn-tuned_r18-pretrained_digit-scenes
_base_ = 'vt-fpn-tuned_r18_digit-scenes.py'

checkpoint = 'work_dirs/resnet18-half_five-digits/epoch_10.pth'
model = dict(backbone=dict(init_cfg=dict(_delete_=True, type='Pretrained', checkpoint=checkpoint, prefix='backbone.')))
