# Twins-PCPVT-S on the embedded digits.
# Top-1 not measured yet.
# python tools/train.py configs/survey/twins-pcpvt-small_digits.py
_base_ = ['../_base_/survey/_digits.py', '../_base_/survey/twins-pcpvt-small.py']

model = _base_.system
