# ViT-B/16 on the embedded digits.
# Top-1 not measured yet.
# python tools/train.py configs/survey/vit-base_digits.py
_base_ = ['../_base_/survey/_digits.py', '../_base_/survey/vit-base.py']

model = _base_.system
