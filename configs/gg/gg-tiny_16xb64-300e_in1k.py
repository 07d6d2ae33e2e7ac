# GG-T on ImageNet-1k with DeiT's recipe.
# Source: not public: no code was found.
# Remaining: unknown.
# vt train gg-tiny_16xb64-300e_in1k
_base_ = ['../_base_/recipes/deit_in1k.py', '../_base_/models/gg-tiny.py']

model = _base_.architecture
