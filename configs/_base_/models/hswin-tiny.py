# HSwin-T: Swin-T whose last block of each stage has attention of all tokens to pooled ones. There is no public
# code; this follows the survey's description, with the pooling of PVTv2's linear attention.
_base_ = 'swin-tiny.py'

windows = _base_.attention
pooled = dict(type='vt.ReducedAttention', reduce=dict(type='vt.PoolingReduction', side=7))
stages = _base_.architecture.backbone.stages
for stage in stages:
    stage['attention'] = [*(windows * 3)[: stage['depth'] - 1], pooled]

architecture = dict(backbone=dict(stages=stages))
