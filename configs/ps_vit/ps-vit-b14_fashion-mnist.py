# PS-ViT-B/14 on Fashion-MNIST, enlarged to 64x64. Two epochs: projects/small_data.
# vt train ps-vit-b14_fashion-mnist
_base_ = ['../_base_/recipes/tokens_fashion-mnist-64px.py', '../_base_/models/ps-vit-b14.py']

model = _base_.architecture

optim_wrapper = dict(optimizer=dict(lr=3e-4))
