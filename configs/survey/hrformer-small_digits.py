# HRFormer-S on the embedded digits, at 56x56.
# Top-1 100.00 % (seeds 0), 21.4 min, bfloat16: AMD EPYC, 1 threads, torch 2.14.1.
# python tools/train.py configs/survey/hrformer-small_digits.py
_base_ = ['../_base_/survey/_digits_56x56.py', '../_base_/survey/hrformer-small.py']

model = _base_.system
