# CPVT-S-GAP on ImageNet-1k with DeiT's recipe.
# python tools/train.py configs/cpvt/cpvt-small-gap_16xb64-300e_in1k.py
_base_ = ['../_base_/recipes/tokens_in1k.py', '../_base_/models/cpvt-small-gap.py']

model = _base_.architecture
