# Twins-PCPVT-S on the embedded digits.
# Top-1 99.72 % (seeds 0), 4.5 min, bfloat16: AMD EPYC, 1 thread, torch 2.14.1.
# vt train twins-pcpvt-small_digits
_base_ = ['../_base_/recipes/tokens_digits.py', '../_base_/models/twins-pcpvt-small.py']

model = _base_.architecture
