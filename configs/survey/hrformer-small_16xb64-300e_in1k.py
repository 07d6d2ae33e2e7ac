# HRFormer-S on ImageNet-1k with DeiT's recipe.
# python tools/train.py configs/survey/hrformer-small_16xb64-300e_in1k.py
_base_ = ['../_base_/survey/_in1k.py', '../_base_/survey/hrformer-small.py']

model = _base_.system
