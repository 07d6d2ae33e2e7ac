# CPVT-S-GAP on ImageNet-1k with DeiT's recipe.
# Source: not public: Meituan-AutoML/CPVT 80f2387 has no code.
# Remaining: unknown.
# vt train cpvt-small-gap_16xb64-300e_in1k
_base_ = ['../_base_/recipes/deit_in1k.py', '../_base_/models/cpvt-small-gap.py']

model = _base_.architecture
