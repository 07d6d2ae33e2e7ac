# CSWin-T on the embedded digits.
# Top-1 not measured yet.
# python tools/train.py configs/survey/cswin-tiny_digits.py
_base_ = ['../_base_/survey/cswin-tiny.py', '../_base_/survey_digits.py']

model = _base_.on_digits
