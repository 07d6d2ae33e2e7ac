# T2T-ViT_t-14 on ImageNet-1k with DeiT's recipe.
# vt train t2t-vit-t-14_16xb64-300e_in1k
_base_ = ['../_base_/recipes/deit_in1k.py', '../_base_/models/t2t-vit-t-14.py']

model = _base_.architecture
