# Twins-SVT-S on Fashion-MNIST, enlarged to 56x56. Two epochs: projects/small_data.
# vt train twins-svt-small_fashion-mnist
_base_ = ['../_base_/recipes/tokens_fashion-mnist-56px.py', '../_base_/models/twins-svt-small.py']

model = _base_.architecture

optim_wrapper = dict(optimizer=dict(lr=3e-4))
