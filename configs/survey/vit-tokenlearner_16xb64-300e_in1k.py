# ViT-S with TokenLearner on ImageNet-1k with DeiT's recipe.
# python tools/train.py configs/survey/vit-tokenlearner_16xb64-300e_in1k.py
_base_ = ['../_base_/survey/_in1k.py', '../_base_/survey/vit-tokenlearner.py']

model = _base_.system
