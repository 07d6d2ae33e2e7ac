# CPVT-S-GAP on the embedded digits.
# Top-1 99.17 % (seeds 0), 5.4 min, bfloat16: AMD EPYC, 1 threads, torch 2.14.1.
# python tools/train.py configs/survey/cpvt-small-gap_digits.py
_base_ = ['../_base_/survey/_digits.py', '../_base_/survey/cpvt-small-gap.py']

model = _base_.system
