# GG-T on ImageNet-1k with DeiT's recipe.
# python tools/train.py configs/gg/gg-tiny_16xb64-300e_in1k.py
_base_ = ['../_base_/recipes/tokens_in1k.py', '../_base_/models/gg-tiny.py']

model = _base_.architecture
