# CPVT-S-GAP on ImageNet-1k with DeiT's recipe.
# python tools/train.py configs/survey/cpvt-small-gap_16xb64-300e_in1k.py
_base_ = ['../_base_/survey/cpvt-small-gap.py', '../_base_/survey_16xb64-300e_in1k.py']
