# Twins-SVT-S on the embedded digits, at 56x56.
# Top-1 99.44 % (seeds 0), 4.3 min, bfloat16: AMD EPYC, 1 thread, torch 2.14.1.
# vt train twins-svt-small_digits
_base_ = ['../_base_/recipes/tokens_digits-56px.py', '../_base_/models/twins-svt-small.py']

model = _base_.architecture
