# MViTv2-T on the embedded digits.
# Top-1 99.72 % (seeds 0), 3.8 min, bfloat16: AMD EPYC, 1 thread, torch 2.14.1.
# vt train mvitv2-tiny_digits
_base_ = ['../_base_/recipes/tokens_digits.py', '../_base_/models/mvitv2-tiny.py']

model = _base_.architecture
