# GG-T on the embedded digits, at 56x56.
# Top-1 99.17 % (seeds 0), 7.2 min, bfloat16: AMD EPYC, 1 thread, torch 2.14.1.
# vt train gg-tiny_digits
_base_ = ['../_base_/recipes/tokens_digits-56px.py', '../_base_/models/gg-tiny.py']

model = _base_.architecture
