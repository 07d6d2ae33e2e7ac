# ViT-S with Performer's attention on ImageNet-1k with DeiT's recipe.
# python tools/train.py configs/performer/vit-performer_16xb64-300e_in1k.py
_base_ = ['../_base_/recipes/tokens_in1k.py', '../_base_/models/vit-performer.py']

model = _base_.architecture
