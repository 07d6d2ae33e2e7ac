# ViT-S with early convolutions on the embedded digits.
# Top-1 not measured yet.
# python tools/train.py configs/survey/vit-early-conv_digits.py
_base_ = ['../_base_/survey/_digits.py', '../_base_/survey/vit-early-conv.py']

model = _base_.system
