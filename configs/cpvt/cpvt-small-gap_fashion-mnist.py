# CPVT-S-GAP on Fashion-MNIST, enlarged to 64x64. Two epochs: projects/small_data.
# vt train cpvt-small-gap_fashion-mnist
_base_ = ['../_base_/recipes/tokens_fashion-mnist-64px.py', '../_base_/models/cpvt-small-gap.py']

model = _base_.architecture
