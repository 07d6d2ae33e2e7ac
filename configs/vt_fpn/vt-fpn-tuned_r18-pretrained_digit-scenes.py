# VT-FPN with the tuned recipe on the embedded scenes, on a ResNet-18 at half width pretrained on five digits.
# Scores: docs/training.md.
# python tools/train.py configs/baselines/resnet18-half_five-digits.py
# python tools/train.py configs/vt_fpn/vt-fpn-tuned_r18-pretrained_digit-scenes.py
_base_ = 'vt-fpn-tuned_r18_digit-scenes.py'

checkpoint = 'work_dirs/resnet18-half_five-digits/epoch_10.pth'
model = dict(backbone=dict(init_cfg=dict(_delete_=True, type='Pretrained', checkpoint=checkpoint, prefix='backbone.')))
