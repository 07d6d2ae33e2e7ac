# T2T-ViT_t-14 on Fashion-MNIST, enlarged to 64x64. Two epochs: projects/small_data.
# vt train t2t-vit-t-14_fashion-mnist
_base_ = ['../_base_/recipes/tokens_fashion-mnist-64px.py', '../_base_/models/t2t-vit-t-14.py']

model = _base_.architecture

optim_wrapper = dict(optimizer=dict(lr=3e-4))
