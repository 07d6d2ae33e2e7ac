# ViT-S with Performer's attention on ImageNet-1k with DeiT's recipe.
# python tools/train.py configs/survey/vit-performer_16xb64-300e_in1k.py
_base_ = ['../_base_/survey/_in1k.py', '../_base_/survey/vit-performer.py']

model = _base_.system
