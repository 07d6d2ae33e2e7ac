# PVT-S on ImageNet-1k with DeiT's recipe.
# Source: whai362/PVT 57e2dfa, classification/main.py, pvt.py and configs/pvt/pvt_small.py: DeiT's recipe is its own,
# but for the decay.
# Remaining: none.
# vt train pvt-small_16xb64-300e_in1k
_base_ = ['../_base_/recipes/deit_in1k.py', '../_base_/models/pvt-small.py']

model = _base_.architecture

# Its authors decay positions.
optim_wrapper = dict(paramwise_cfg=dict(custom_keys={'position.vectors': dict(decay_mult=1.0)}))
