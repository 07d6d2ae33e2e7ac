# ViT-S with early convolutions on ImageNet-1k with DeiT's recipe.
# vt train vit-early-conv_16xb64-300e_in1k
_base_ = ['../_base_/recipes/deit_in1k.py', '../_base_/models/vit-early-conv.py']

model = _base_.architecture
