# LocalViT-S on the embedded digits.
# Top-1 99.72 % (seeds 0), 9.1 min, bfloat16: AMD EPYC, 1 threads, torch 2.14.1.
# python tools/train.py configs/survey/localvit-small_digits.py
_base_ = ['../_base_/survey/_digits.py', '../_base_/survey/localvit-small.py']

model = _base_.system
