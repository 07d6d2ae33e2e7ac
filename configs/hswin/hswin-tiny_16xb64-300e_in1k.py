# HSwin-T on ImageNet-1k with DeiT's recipe.
# Source: not public: no code was found.
# Remaining: nothing was published.
# vt train hswin-tiny_16xb64-300e_in1k
_base_ = ['../_base_/recipes/deit_in1k.py', '../_base_/models/hswin-tiny.py']

model = _base_.architecture
