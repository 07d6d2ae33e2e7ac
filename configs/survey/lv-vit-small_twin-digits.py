# LV-ViT-S on the twin digits, each patch with its image's label.
# Top-1 not measured yet.
# python tools/train.py configs/survey/lv-vit-small_twin-digits.py
_base_ = ['../_base_/survey/_twin-digits.py', '../_base_/survey/lv-vit-small.py']

model = _base_.system
model |= dict(teacher=None, teacher_checkpoint=None)
