# CeiT-S on the twin digits.
# Top-1 not measured yet.
# python tools/train.py configs/survey/ceit-small_twin-digits.py
_base_ = ['../_base_/survey/_twin-digits.py', '../_base_/survey/ceit-small.py']

model = _base_.system
