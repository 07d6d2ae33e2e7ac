# ViT-B/16 on ImageNet-1k with DeiT's recipe.
# python tools/train.py configs/vit/vit-base_16xb64-300e_in1k.py
_base_ = ['../_base_/recipes/tokens_in1k.py', '../_base_/models/vit-base.py']

model = _base_.architecture
