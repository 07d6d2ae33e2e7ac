# ReZero (Bachlechner et al., UAI 2021) in a ViT-small: no norms in the blocks, one factor for both branches that starts
# at zero. The norm before the head is kept.
_base_ = 'deit-small.py'

stages = _base_.architecture.backbone.stages
stages[0] |= dict(norm_cfg=None, rezero=True, norm=dict(type='LN', eps=1e-6))

architecture = dict(backbone=dict(stages=stages))
