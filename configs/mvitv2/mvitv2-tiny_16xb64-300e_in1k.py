# MViTv2-T on ImageNet-1k with DeiT's recipe.
# vt train mvitv2-tiny_16xb64-300e_in1k
_base_ = ['../_base_/recipes/deit_in1k.py', '../_base_/models/mvitv2-tiny.py']

model = _base_.architecture
