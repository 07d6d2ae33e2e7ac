# ViT-S with sparse attention on the embedded digits.
# Top-1 98.06 % (seeds 0), 4.5 min, bfloat16: AMD EPYC, 1 thread, torch 2.14.1.
# vt train vit-sparse_digits
_base_ = ['../_base_/recipes/tokens_digits.py', '../_base_/models/vit-sparse.py']

model = _base_.architecture
