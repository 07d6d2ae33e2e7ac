# ViT-B/16 on the embedded digits.
# Top-1 96.94 % (seeds 0), 12.0 min, bfloat16: AMD EPYC, 1 thread, torch 2.14.1.
# vt train vit-base_digits
_base_ = ['../_base_/recipes/tokens_digits.py', '../_base_/models/vit-base.py']

model = _base_.architecture
