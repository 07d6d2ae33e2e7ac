# MViT-B-24, 32 frames, every 3rd, on Kinetics-600. Published: 52.9 M, 236 G, top-1 83.8; not trained here.
# vt train mvit-base24-32x3_k600
_base_ = ['../_base_/recipes/mvit_kinetics.py', '../_base_/datasets/kinetics600_32x3.py']

model = dict(backbone=dict(arch='base-24', num_frames=32, drop_path_rate=0.3), head=dict(num_classes=600))
