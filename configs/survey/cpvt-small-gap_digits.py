# CPVT-S-GAP on the embedded digits.
# Top-1 not measured yet.
# python tools/train.py configs/survey/cpvt-small-gap_digits.py
_base_ = ['../_base_/survey/_digits.py', '../_base_/survey/cpvt-small-gap.py']

model = _base_.system
