# ViT-B/16 with 4 of its 12 blocks, for about the FLOPs of ResNet-18, on Fashion-MNIST, enlarged to 64x64.
# Two epochs: projects/small_data.
# vt train vit-base_fashion-mnist
_base_ = ['../_base_/recipes/tokens_fashion-mnist-64px.py', '../_base_/models/vit-base.py']

model = _base_.architecture
model['backbone']['stages'][0]['depth'] = 4

optim_wrapper = dict(optimizer=dict(lr=3e-4))
