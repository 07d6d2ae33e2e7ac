# ViTAE-S on the embedded digits.
# Top-1 100.00 % (seeds 0), 10.6 min, bfloat16: AMD EPYC, 1 threads, torch 2.14.1.
# python tools/train.py configs/survey/vitae-small_digits.py
_base_ = ['../_base_/survey/_digits.py', '../_base_/survey/vitae-small.py']

model = _base_.system
