# ResT-S on the embedded digits.
# Top-1 99.44 % (seeds 0), 7.0 min, bfloat16: AMD EPYC, 1 thread, torch 2.14.1.
# vt train rest-small_digits
_base_ = ['../_base_/recipes/tokens_digits.py', '../_base_/models/rest-small.py']

model = _base_.architecture
