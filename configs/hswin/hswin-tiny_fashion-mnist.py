# HSwin-T on Fashion-MNIST, enlarged to 56x56. Two epochs: projects/small_data.
# vt train hswin-tiny_fashion-mnist
_base_ = ['../_base_/recipes/tokens_fashion-mnist-56px.py', '../_base_/models/hswin-tiny.py']

model = _base_.architecture

optim_wrapper = dict(optimizer=dict(lr=3e-4))
