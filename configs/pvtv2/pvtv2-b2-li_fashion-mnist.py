# PVTv2-B2-Li on Fashion-MNIST, enlarged to 64x64. Two epochs: projects/small_data.
# vt train pvtv2-b2-li_fashion-mnist
_base_ = ['../_base_/recipes/tokens_fashion-mnist-64px.py', '../_base_/models/pvtv2-b2-li.py']

model = _base_.architecture
