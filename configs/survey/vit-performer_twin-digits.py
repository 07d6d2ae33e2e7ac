# ViT-S with Performer's attention on the twin digits.
# Top-1 not measured yet.
# python tools/train.py configs/survey/vit-performer_twin-digits.py
_base_ = ['../_base_/survey/_twin-digits.py', '../_base_/survey/vit-performer.py']

model = _base_.system
