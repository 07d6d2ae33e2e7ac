# PVTv2-B2-Li: keys and values of every stage are averages over a grid of 7x7, so that attention is linear in the
# pixels; the feed-forward has an activation before its convolution, too.
_base_ = 'pvtv2-b2.py'

stages = _base_.architecture.backbone.stages
for stage in stages:
    stage['attention'] = dict(type='vt.ReducedAttention', reduce=dict(type='vt.PoolingReduction'))
feed_forward = dict(fc1_act_cfg=dict(type='ReLU'))
architecture = dict(backbone=dict(stages=stages, every_stage=dict(feed_forward=feed_forward)))
