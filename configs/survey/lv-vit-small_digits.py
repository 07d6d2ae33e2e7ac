# LV-ViT-S on the embedded digits.
# Top-1 not measured yet.
# python tools/train.py configs/survey/lv-vit-small_digits.py
_base_ = ['../_base_/survey/_digits.py', '../_base_/survey/lv-vit-small.py']

model = _base_.system
