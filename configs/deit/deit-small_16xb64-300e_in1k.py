# DeiT-S on ImageNet-1k with DeiT's recipe.
# Source: facebookresearch/deit 7e160fe, README_deit.md and main.py: DeiT's recipe is its own.
# Remaining: none.
# vt train deit-small_16xb64-300e_in1k
_base_ = ['../_base_/recipes/deit_in1k.py', '../_base_/models/deit-small.py']

model = _base_.architecture
