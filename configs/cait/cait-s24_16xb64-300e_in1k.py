# CaiT-S24 on ImageNet-1k with DeiT's recipe.
# vt train cait-s24_16xb64-300e_in1k
_base_ = ['../_base_/recipes/deit_in1k.py', '../_base_/models/cait-s24.py']

model = _base_.architecture
