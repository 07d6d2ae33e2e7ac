# PVT-S on ImageNet-1k with DeiT's recipe.
# python tools/train.py configs/pvt/pvt-small_16xb64-300e_in1k.py
_base_ = ['../_base_/recipes/tokens_in1k.py', '../_base_/models/pvt-small.py']

model = _base_.architecture

# Its authors decay positions.
optim_wrapper = dict(paramwise_cfg=dict(custom_keys={'position.vectors': dict(decay_mult=1.0)}))
