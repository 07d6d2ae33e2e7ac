# Swin-T on the embedded digits, at 56x56.
# Top-1 not measured yet.
# python tools/train.py configs/survey/swin-tiny_digits.py
_base_ = ['../_base_/survey/swin-tiny.py', '../_base_/survey_digits_56x56.py']

model = _base_.on_digits
