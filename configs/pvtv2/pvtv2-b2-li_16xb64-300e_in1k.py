# PVTv2-B2-Li on ImageNet-1k with DeiT's recipe.
# python tools/train.py configs/pvtv2/pvtv2-b2-li_16xb64-300e_in1k.py
_base_ = ['../_base_/recipes/tokens_in1k.py', '../_base_/models/pvtv2-b2-li.py']

model = _base_.architecture
