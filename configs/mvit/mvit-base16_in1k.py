# MViT-B-16 on ImageNet-1k. Published: 37.0 M, 7.8 G, top-1 83.0; not trained here.
# vt train mvit-base16_in1k
_base_ = ['../_base_/recipes/mvit_in1k.py', '../_base_/datasets/imagenet_bs64_randaugment-n6.py']

model = dict(backbone=dict(arch='base'))
