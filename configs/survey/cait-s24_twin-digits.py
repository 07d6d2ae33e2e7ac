# CaiT-S24 on the twin digits.
# Top-1 not measured yet.
# python tools/train.py configs/survey/cait-s24_twin-digits.py
_base_ = ['../_base_/survey/_twin-digits.py', '../_base_/survey/cait-s24.py']

model = _base_.system
