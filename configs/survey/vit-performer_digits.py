# ViT-S with Performer's attention on the embedded digits.
# Top-1 not measured yet.
# python tools/train.py configs/survey/vit-performer_digits.py
_base_ = ['../_base_/survey/_digits.py', '../_base_/survey/vit-performer.py']

model = _base_.system
