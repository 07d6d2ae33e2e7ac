# HSwin-T on the embedded digits, at 56x56.
# Top-1 99.72 % (seeds 0), 3.8 min, bfloat16: AMD EPYC, 1 thread, torch 2.14.1.
# vt train hswin-tiny_digits
_base_ = ['../_base_/recipes/tokens_digits-56px.py', '../_base_/models/hswin-tiny.py']

model = _base_.architecture
