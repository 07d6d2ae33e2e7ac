# CeiT-S on the embedded digits.
# Top-1 99.72 % (seeds 0), 6.5 min, bfloat16: AMD EPYC, 1 thread, torch 2.14.1.
# vt train ceit-small_digits
_base_ = ['../_base_/recipes/tokens_digits.py', '../_base_/models/ceit-small.py']

model = _base_.architecture
