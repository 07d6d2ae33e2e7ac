# Table 10: ViT-B with pooled keys and values. Published: 148.4 G, which eleven of the twelve blocks give.
# vt train table10_pooled-keys_k400
_base_ = '../vit-base-16x4_k400.py'

model = dict(backbone=dict(arch=dict(depths=(1, 11), query_stride=1), key_value_stride=[1, 2], adaptive=False))
