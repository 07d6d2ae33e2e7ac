# Swin v2-T on the embedded digits.
# Top-1 98.89 % (seeds 0), 8.1 min, bfloat16: AMD EPYC, 1 thread, torch 2.14.1.
# vt train swinv2-tiny_digits
_base_ = ['../_base_/recipes/tokens_digits.py', '../_base_/models/swinv2-tiny.py']

model = _base_.architecture
