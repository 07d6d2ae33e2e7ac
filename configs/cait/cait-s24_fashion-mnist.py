# CaiT-S24 on Fashion-MNIST, enlarged to 64x64. Two epochs: projects/small_data.
# python tools/train.py configs/cait/cait-s24_fashion-mnist.py
_base_ = ['../_base_/recipes/tokens_fashion-mnist-64px.py', '../_base_/models/cait-s24.py']

model = _base_.architecture
