# TNT-S on Fashion-MNIST, enlarged to 64x64. Two epochs: projects/small_data.
# vt train tnt-small_fashion-mnist
_base_ = ['../_base_/recipes/tokens_fashion-mnist-64px.py', '../_base_/models/tnt-small.py']

model = _base_.architecture
model['backbone'] |= dict(_delete_=True, img_size=64)  # its name for image_size

optim_wrapper = dict(optimizer=dict(lr=3e-4))
