# LocalViT-S on the embedded digits.
# Top-1 not measured yet.
# python tools/train.py configs/survey/localvit-small_digits.py
_base_ = ['../_base_/survey/_digits.py', '../_base_/survey/localvit-small.py']

model = _base_.system
