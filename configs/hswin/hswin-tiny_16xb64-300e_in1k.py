# HSwin-T on ImageNet-1k with DeiT's recipe.
# python tools/train.py configs/hswin/hswin-tiny_16xb64-300e_in1k.py
_base_ = ['../_base_/recipes/tokens_in1k.py', '../_base_/models/hswin-tiny.py']

model = _base_.architecture
