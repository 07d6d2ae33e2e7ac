# DeiT-S with a distillation token on ImageNet-1k with DeiT's recipe.
# Source: facebookresearch/deit 7e160fe, README_deit.md, main.py and losses.py: DeiT's recipe is its own.
# Remaining: the distillation token does not decay, theirs does.
# vt train deit-small-distilled_16xb64-300e_in1k
_base_ = ['../_base_/recipes/deit_in1k.py', '../_base_/models/deit-small-distilled.py']

model = _base_.architecture
