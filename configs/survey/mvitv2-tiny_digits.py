# MViTv2-T on the embedded digits.
# Top-1 not measured yet.
# python tools/train.py configs/survey/mvitv2-tiny_digits.py
_base_ = ['../_base_/survey/_digits.py', '../_base_/survey/mvitv2-tiny.py']

model = _base_.system
