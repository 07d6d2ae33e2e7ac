# ViTAE-S on ImageNet-1k with DeiT's recipe.
# python tools/train.py configs/survey/vitae-small_16xb64-300e_in1k.py
_base_ = ['../_base_/survey/_in1k.py', '../_base_/survey/vitae-small.py']

model = _base_.system
