# CaiT-S24 on the embedded digits.
# Top-1 98.61 % (seeds 0), 6.4 min, bfloat16: AMD EPYC, 1 thread, torch 2.14.1.
# vt train cait-s24_digits
_base_ = ['../_base_/recipes/tokens_digits.py', '../_base_/models/cait-s24.py']

model = _base_.architecture
