# P2T-S on the embedded digits.
# Top-1 98.33 % (seeds 0), 7.1 min, bfloat16: AMD EPYC, 1 threads, torch 2.14.1.
# python tools/train.py configs/survey/p2t-small_digits.py
_base_ = ['../_base_/survey/_digits.py', '../_base_/survey/p2t-small.py']

model = _base_.system
