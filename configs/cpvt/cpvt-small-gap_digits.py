# CPVT-S-GAP on the embedded digits.
# Top-1 99.72 % (seeds 0), 3.6 min, bfloat16: AMD EPYC, 1 thread, torch 2.14.1.
# vt train cpvt-small-gap_digits
_base_ = ['../_base_/recipes/tokens_digits.py', '../_base_/models/cpvt-small-gap.py']

model = _base_.architecture
