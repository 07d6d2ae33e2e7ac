# ViT-S with Performer's attention on the embedded digits.
# Top-1 98.89 % (seeds 0), 5.2 min, bfloat16: AMD EPYC, 1 thread, torch 2.14.1.
# vt train vit-performer_digits
_base_ = ['../_base_/recipes/tokens_digits.py', '../_base_/models/vit-performer.py']

model = _base_.architecture
