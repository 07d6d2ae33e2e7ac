# PVTv2-B2-Li on the embedded digits.
# Top-1 98.89 % (seeds 0), 9.8 min, bfloat16: AMD EPYC, 1 threads, torch 2.14.1.
# python tools/train.py configs/survey/pvtv2-b2-li_digits.py
_base_ = ['../_base_/survey/_digits.py', '../_base_/survey/pvtv2-b2-li.py']

model = _base_.system
