# ResT-S on ImageNet-1k with DeiT's recipe.
# vt train rest-small_16xb64-300e_in1k
_base_ = ['../_base_/recipes/deit_in1k.py', '../_base_/models/rest-small.py']

model = _base_.architecture
