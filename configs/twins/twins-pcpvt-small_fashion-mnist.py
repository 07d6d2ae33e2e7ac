# Twins-PCPVT-S on Fashion-MNIST, enlarged to 64x64.
# python tools/train.py configs/twins/twins-pcpvt-small_fashion-mnist.py
_base_ = ['../_base_/recipes/tokens_fashion-mnist-64px.py', '../_base_/models/twins-pcpvt-small.py']

model = _base_.architecture
