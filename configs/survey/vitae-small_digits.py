# ViTAE-S on the embedded digits.
# Top-1 not measured yet.
# python tools/train.py configs/survey/vitae-small_digits.py
_base_ = ['../_base_/survey/_digits.py', '../_base_/survey/vitae-small.py']

model = _base_.system
