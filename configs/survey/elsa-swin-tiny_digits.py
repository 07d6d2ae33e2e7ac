# ELSA-Swin-T on the embedded digits, at 56x56.
# Top-1 99.72 % (seeds 0), 16.4 min, bfloat16: AMD EPYC, 1 threads, torch 2.14.1.
# python tools/train.py configs/survey/elsa-swin-tiny_digits.py
_base_ = ['../_base_/survey/_digits_56x56.py', '../_base_/survey/elsa-swin-tiny.py']

model = _base_.system
