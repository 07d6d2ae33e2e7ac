# LocalViT-S on Fashion-MNIST, enlarged to 64x64. Two epochs: projects/small_data.
# vt train localvit-small_fashion-mnist
_base_ = ['../_base_/recipes/tokens_fashion-mnist-64px.py', '../_base_/models/localvit-small.py']

model = _base_.architecture

optim_wrapper = dict(optimizer=dict(lr=3e-4))
