# MSG-T on the twin digits, at 56x56.
# Top-1 not measured yet.
# python tools/train.py configs/survey/msg-tiny_twin-digits.py
_base_ = ['../_base_/survey/_twin-digits_56x56.py', '../_base_/survey/msg-tiny.py']

model = _base_.system
