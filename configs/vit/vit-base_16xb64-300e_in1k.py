# ViT-B/16 on ImageNet-1k with DeiT's recipe.
# Source: facebookresearch/deit 7e160fe, main.py: it is DeiT-B's training.
# Remaining: none.
# vt train vit-base_16xb64-300e_in1k
_base_ = ['../_base_/recipes/deit_in1k.py', '../_base_/models/vit-base.py']

model = _base_.architecture
