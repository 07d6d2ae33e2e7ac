# MViT-B, 32 frames, every 3rd, on Kinetics-400. Published: 36.6 M, 170 G, top-1 80.2; not trained here.
# vt train mvit-base-32x3_k400
_base_ = ['../_base_/recipes/mvit_kinetics.py', '../_base_/datasets/kinetics400_32x3.py']

model = dict(backbone=dict(arch='base', num_frames=32))
