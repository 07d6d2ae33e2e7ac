# PVTv2-B2-Li on ImageNet-1k with DeiT's recipe.
# python tools/train.py configs/survey/pvtv2-b2-li_16xb64-300e_in1k.py
_base_ = ['../_base_/survey/_in1k.py', '../_base_/survey/pvtv2-b2-li.py']

model = _base_.system
