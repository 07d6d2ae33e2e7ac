# MSG-T on ImageNet-1k with DeiT's recipe.
# python tools/train.py configs/msg/msg-tiny_16xb64-300e_in1k.py
_base_ = ['../_base_/recipes/deit_in1k.py', '../_base_/models/msg-tiny.py']

model = _base_.architecture
