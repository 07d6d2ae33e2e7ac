# MViT-B-24-wide on ImageNet-1k at 320x320. Published: 72.9 M, 32.7 G, top-1 84.8; not trained here.
# vt train mvit-base24-wide_in1k-320px
_base_ = ['../_base_/recipes/mvit_in1k.py', '../_base_/datasets/imagenet_bs64_randaugment-n6_320px.py']

model = dict(backbone=dict(arch='base-24-wide', image_size=320), head=dict(in_channels=896))
