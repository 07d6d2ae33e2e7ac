# MViT-B, 16 frames, every 4th, on Kinetics-400. Published: 36.6 M, 70.5 G, top-1 78.4; not trained here.
# vt train mvit-base-16x4_k400
_base_ = ['../_base_/recipes/mvit_kinetics.py', '../_base_/datasets/kinetics400.py']

model = dict(backbone=dict(arch='base', num_frames=16))
