# ViT-S with Performer's attention on ImageNet-1k with DeiT's recipe.
# Source: no such ViT in the paper.
# Remaining: nothing was published.
# vt train vit-performer_16xb64-300e_in1k
_base_ = ['../_base_/recipes/deit_in1k.py', '../_base_/models/vit-performer.py']

model = _base_.architecture
