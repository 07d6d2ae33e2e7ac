# LocalViT-S on ImageNet-1k with DeiT's recipe.
# Source: ofsoundof/LocalViT f497260, README.md and main.py: DeiT's recipe is its own; averaged weights are stored but
# not scored.
# Remaining: batch statistics are those of 64 images a process, theirs of 128.
# vt train localvit-small_16xb64-300e_in1k
_base_ = ['../_base_/recipes/deit_in1k.py', '../_base_/models/localvit-small.py']

model = _base_.architecture
