# PS-ViT-B/14 on ImageNet-1k with DeiT's recipe.
# vt train ps-vit-b14_16xb64-300e_in1k
_base_ = ['../_base_/recipes/deit_in1k.py', '../_base_/models/ps-vit-b14.py']

model = _base_.architecture
