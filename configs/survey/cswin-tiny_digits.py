# CSWin-T on the embedded digits.
# Top-1 not measured yet.
# python tools/train.py configs/survey/cswin-tiny_digits.py
_base_ = ['../_base_/survey/_digits.py', '../_base_/survey/cswin-tiny.py']

model = _base_.system
