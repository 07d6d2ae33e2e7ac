# MSG-T on the embedded digits, at 56x56.
# Top-1 99.44 % (seeds 0), 6.5 min, bfloat16: AMD EPYC, 1 thread, torch 2.14.1.
# vt train msg-tiny_digits
_base_ = ['../_base_/recipes/tokens_digits-56px.py', '../_base_/models/msg-tiny.py']

model = _base_.architecture
