# ViT-S with ReZero on the embedded digits.
# Top-1 not measured yet.
# python tools/train.py configs/survey/vit-rezero_digits.py
_base_ = ['../_base_/survey/_digits.py', '../_base_/survey/vit-rezero.py']

model = _base_.system
