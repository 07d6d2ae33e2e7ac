# MViTv2-S, 16 frames, every 4th, on Kinetics-400. torchvision's: 34.5 M, 64.2 G, top-1 80.8; not trained here.
# vt train mvitv2-small-16x4_k400
_base_ = ['../_base_/recipes/mvit_kinetics.py', '../_base_/datasets/kinetics400.py']

model = dict(backbone=dict(arch='v2-small', num_frames=16))
