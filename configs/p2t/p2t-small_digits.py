# P2T-S on the embedded digits.
# Top-1 99.17 % (seeds 0), 5.1 min, bfloat16: AMD EPYC, 1 thread, torch 2.14.1.
# vt train p2t-small_digits
_base_ = ['../_base_/recipes/tokens_digits.py', '../_base_/models/p2t-small.py']

model = _base_.architecture
