# MViT-B-16 on ImageNet-1k with max pooling instead of convolutions. Published: 37.0 M, 7.8 G, top-1 82.5.
# vt train mvit-base16-max_in1k
_base_ = 'mvit-base16_in1k.py'

model = dict(backbone=dict(pooling='max', kernel='s+1'))
