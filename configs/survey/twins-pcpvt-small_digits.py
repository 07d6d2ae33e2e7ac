# Twins-PCPVT-S on the embedded digits.
# Top-1 not measured yet.
# python tools/train.py configs/survey/twins-pcpvt-small_digits.py
_base_ = ['../_base_/survey/twins-pcpvt-small.py', '../_base_/survey_digits.py']

model = _base_.on_digits
