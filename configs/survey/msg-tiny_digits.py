# MSG-T on the embedded digits, at 56x56.
# Top-1 99.17 % (seeds 0), 11.4 min, bfloat16: AMD EPYC, 1 threads, torch 2.14.1.
# python tools/train.py configs/survey/msg-tiny_digits.py
_base_ = ['../_base_/survey/_digits_56x56.py', '../_base_/survey/msg-tiny.py']

model = _base_.system
