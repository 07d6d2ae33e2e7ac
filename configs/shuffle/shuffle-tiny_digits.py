# Shuffle-T on the embedded digits, at 56x56.
# Top-1 100.00 % (seeds 0), 25.0 min, bfloat16: AMD EPYC, 1 thread, torch 2.14.1.
# vt train shuffle-tiny_digits
_base_ = ['../_base_/recipes/tokens_digits-56px.py', '../_base_/models/shuffle-tiny.py']

model = _base_.architecture
