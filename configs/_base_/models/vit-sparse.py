# Sparse attention (Child et al., 2019) in a ViT-small: neighbours and a coarser grid in turn, by masks.
_base_ = 'deit-small.py'

stages = _base_.architecture.backbone.stages
stages[0]['attention'] = [
    dict(type='vt.SparseAttention', near=2),
    dict(type='vt.SparseAttention', stride=4),
]

architecture = dict(backbone=dict(stages=stages))
