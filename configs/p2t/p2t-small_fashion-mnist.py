# P2T-S on Fashion-MNIST, enlarged to 64x64. Two epochs: projects/small_data.
# vt train p2t-small_fashion-mnist
_base_ = ['../_base_/recipes/tokens_fashion-mnist-64px.py', '../_base_/models/p2t-small.py']

model = _base_.architecture
