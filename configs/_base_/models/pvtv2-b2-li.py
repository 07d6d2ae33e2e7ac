# PVTv2-B2-Li: keys and values of every stage are average-pooled to 7x7, which makes attention linear in the pixels;
# the feed-forward also has an activation before its convolution.
_base_ = 'pvtv2-b2.py'

stages = _base_.architecture.backbone.stages
for stage in stages:
    stage['attention'] = dict(type='vt.ReducedAttention', reduce=dict(type='vt.PoolingReduction'))
feed_forward = dict(fc1_act_cfg=dict(type='ReLU'))
architecture = dict(backbone=dict(stages=stages, every_stage=dict(feed_forward=feed_forward)))
