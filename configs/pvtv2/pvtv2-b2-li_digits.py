# PVTv2-B2-Li on the embedded digits.
# Top-1 99.72 % (seeds 0), 20.1 min, bfloat16: AMD EPYC, 1 thread, torch 2.14.1.
# vt train pvtv2-b2-li_digits
_base_ = ['../_base_/recipes/tokens_digits.py', '../_base_/models/pvtv2-b2-li.py']

model = _base_.architecture
