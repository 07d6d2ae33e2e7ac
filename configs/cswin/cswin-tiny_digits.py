# CSWin-T on the embedded digits.
# Top-1 99.44 % (seeds 0), 5.0 min, bfloat16: AMD EPYC, 1 thread, torch 2.14.1.
# vt train cswin-tiny_digits
_base_ = ['../_base_/recipes/tokens_digits.py', '../_base_/models/cswin-tiny.py']

model = _base_.architecture
