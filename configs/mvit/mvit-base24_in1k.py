# MViT-B-24 on ImageNet-1k. Published: 53.5 M, 10.9 G, top-1 83.1 with max pooling; not trained here.
# vt train mvit-base24_in1k
_base_ = ['../_base_/recipes/mvit_in1k.py', '../_base_/datasets/imagenet_bs64_randaugment-n6.py']

model = dict(backbone=dict(arch='base-24'))
