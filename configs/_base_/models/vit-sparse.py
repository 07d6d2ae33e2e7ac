# Sparse attention (Child et al., 2019) in a ViT-small: local and strided patterns in turn, by masks.
_base_ = 'deit-small.py'

stages = _base_.architecture.backbone.stages
stages[0]['attention'] = [
    dict(type='vt.SparseAttention', near=2),
    dict(type='vt.SparseAttention', stride=4),
]

architecture = dict(backbone=dict(stages=stages))
