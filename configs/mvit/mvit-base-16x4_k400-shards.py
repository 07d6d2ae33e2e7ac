# mvit-base-16x4_k400 on Kinetics-400 in tar shards (docs/how-to/shards.md); not trained here.
# python tools/train.py configs/mvit/mvit-base-16x4_k400-shards.py
_base_ = ['../_base_/recipes/mvit_kinetics.py', '../_base_/datasets/kinetics400_shards.py']

model = dict(backbone=dict(arch='base', num_frames=16))
