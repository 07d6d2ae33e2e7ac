# ViT-S with TokenLearner on ImageNet-1k with DeiT's recipe.
# Source: no ViT-S in the paper.
# Remaining: nothing was published.
# vt train vit-tokenlearner_16xb64-300e_in1k
_base_ = ['../_base_/recipes/deit_in1k.py', '../_base_/models/vit-tokenlearner.py']

model = _base_.architecture
