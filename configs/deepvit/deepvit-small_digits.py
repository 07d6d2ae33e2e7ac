# DeepViT-S on the embedded digits.
# Top-1 98.61 % (seeds 0), 4.5 min, bfloat16: AMD EPYC, 1 thread, torch 2.14.1.
# vt train deepvit-small_digits
_base_ = ['../_base_/recipes/tokens_digits.py', '../_base_/models/deepvit-small.py']

model = _base_.architecture
