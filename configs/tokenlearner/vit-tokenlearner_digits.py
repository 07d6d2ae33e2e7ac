# ViT-S with TokenLearner on the embedded digits.
# Top-1 98.33 % (seeds 0), 3.1 min, bfloat16: AMD EPYC, 1 thread, torch 2.14.1.
# vt train vit-tokenlearner_digits
_base_ = ['../_base_/recipes/tokens_digits.py', '../_base_/models/vit-tokenlearner.py']

model = _base_.architecture
