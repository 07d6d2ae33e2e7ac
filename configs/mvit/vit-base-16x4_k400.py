# ViT-B on cubes of 2x16x16, with one scale, the baseline of the paper's tables. Published: 87.2 M, 180 G, top-1 68.5.
# vt train vit-base-16x4_k400
_base_ = ['../_base_/recipes/mvit_kinetics.py', '../_base_/datasets/kinetics400.py']

embed = dict(type='vt.CubeEmbed', kernel_size=(2, 16, 16))
position = dict(type='vt.AbsolutePosition')
arch = dict(channels=768, num_heads=12, growth=1, depths=(12,), position=position)
model = dict(backbone=dict(arch=arch, embed=embed, key_value_stride=1, pooling='max', kernel='s+1'))
