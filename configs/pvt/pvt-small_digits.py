# PVT-S on the embedded digits.
# Top-1 99.17 % (seeds 0), 24.0 min, bfloat16: AMD EPYC, 1 thread, torch 2.14.1.
# vt train pvt-small_digits
_base_ = ['../_base_/recipes/tokens_digits.py', '../_base_/models/pvt-small.py']

model = _base_.architecture
