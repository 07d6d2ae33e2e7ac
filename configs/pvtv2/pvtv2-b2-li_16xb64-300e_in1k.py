# PVTv2-B2-Li on ImageNet-1k with DeiT's recipe.
# Source: whai362/PVT 57e2dfa, classification/main.py and configs/pvt_v2/pvt_v2_b2_li.py: DeiT's recipe is its own.
# Remaining: none.
# vt train pvtv2-b2-li_16xb64-300e_in1k
_base_ = ['../_base_/recipes/deit_in1k.py', '../_base_/models/pvtv2-b2-li.py']

model = _base_.architecture
