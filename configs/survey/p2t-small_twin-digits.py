# P2T-S on the twin digits.
# Top-1 not measured yet.
# python tools/train.py configs/survey/p2t-small_twin-digits.py
_base_ = ['../_base_/survey/_twin-digits.py', '../_base_/survey/p2t-small.py']

model = _base_.system
