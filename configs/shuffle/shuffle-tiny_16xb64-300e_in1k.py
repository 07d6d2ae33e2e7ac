# Shuffle-T on ImageNet-1k with DeiT's recipe.
# python tools/train.py configs/shuffle/shuffle-tiny_16xb64-300e_in1k.py
_base_ = ['../_base_/recipes/deit_in1k.py', '../_base_/models/shuffle-tiny.py']

model = _base_.architecture
