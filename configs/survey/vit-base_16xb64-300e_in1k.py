# ViT-B/16 on ImageNet-1k with DeiT's recipe.
# python tools/train.py configs/survey/vit-base_16xb64-300e_in1k.py
_base_ = ['../_base_/survey/vit-base.py', '../_base_/survey_16xb64-300e_in1k.py']
