# Swin v2-T on the embedded digits.
# Top-1 not measured yet.
# python tools/train.py configs/survey/swinv2-tiny_digits.py
_base_ = ['../_base_/survey/_digits.py', '../_base_/survey/swinv2-tiny.py']

model = _base_.system
