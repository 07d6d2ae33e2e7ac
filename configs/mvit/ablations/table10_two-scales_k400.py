# Table 10: ViT-B with a second scale, after six blocks. Published: 111.1 G.
# vt train table10_two-scales_k400
_base_ = '../vit-base-16x4_k400.py'

model = dict(backbone=dict(arch=dict(depths=(6, 6))))
