# MViT-B-16 on Fashion-MNIST, enlarged to 64x64. Two epochs: projects/small_data.
# vt train mvit-base16_fashion-mnist
_base_ = '../_base_/recipes/tokens_fashion-mnist-64px.py'

model = dict(backbone=dict(type='vt.MViT', arch='base'), head=dict(in_channels=768))
