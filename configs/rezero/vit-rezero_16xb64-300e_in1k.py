# ViT-S with ReZero on ImageNet-1k with DeiT's recipe.
# Source: no ViT in the paper.
# Remaining: nothing was published.
# vt train vit-rezero_16xb64-300e_in1k
_base_ = ['../_base_/recipes/deit_in1k.py', '../_base_/models/vit-rezero.py']

model = _base_.architecture
