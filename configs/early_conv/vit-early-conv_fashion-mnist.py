# ViT-S with early convolutions on Fashion-MNIST, enlarged to 64x64. Two epochs: projects/small_data.
# vt train vit-early-conv_fashion-mnist
_base_ = ['../_base_/recipes/tokens_fashion-mnist-64px.py', '../_base_/models/vit-early-conv.py']

model = _base_.architecture
