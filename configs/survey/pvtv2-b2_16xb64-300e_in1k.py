# PVTv2-B2 on ImageNet-1k with DeiT's recipe.
# python tools/train.py configs/survey/pvtv2-b2_16xb64-300e_in1k.py
_base_ = ['../_base_/survey/_in1k.py', '../_base_/survey/pvtv2-b2.py']

model = _base_.system
