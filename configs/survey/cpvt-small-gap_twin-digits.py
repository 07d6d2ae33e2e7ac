# CPVT-S-GAP on the twin digits.
# Top-1 not measured yet.
# python tools/train.py configs/survey/cpvt-small-gap_twin-digits.py
_base_ = ['../_base_/survey/_twin-digits.py', '../_base_/survey/cpvt-small-gap.py']

model = _base_.system
