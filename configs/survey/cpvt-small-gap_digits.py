# CPVT-S-GAP on the embedded digits.
# Top-1 not measured yet.
# python tools/train.py configs/survey/cpvt-small-gap_digits.py
_base_ = ['../_base_/survey/cpvt-small-gap.py', '../_base_/survey_digits.py']

model = _base_.on_digits
