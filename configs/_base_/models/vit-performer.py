# Performer (Choromanski et al., ICLR 2021) in a ViT-small: attention by 266 positive orthogonal random features a head.
_base_ = 'deit-small.py'

stages = _base_.architecture.backbone.stages
stages[0]['attention'] = dict(type='vt.PerformerAttention')

architecture = dict(backbone=dict(stages=stages))
