# ELSA-Swin-T on ImageNet-1k with DeiT's recipe.
# python tools/train.py configs/elsa/elsa-swin-tiny_16xb64-300e_in1k.py
_base_ = ['../_base_/recipes/deit_in1k.py', '../_base_/models/elsa-swin-tiny.py']

model = _base_.architecture
