# ELSA-Swin-T (Zhou et al., 2021): Swin-T whose first three stages have Hadamard attention of 7x7 neighbours, with the
# shift of the ghost head, instead of windows.
_base_ = 'swin-tiny.py'

stages = _base_.architecture.backbone.stages
for stage in stages[:3]:
    stage['attention'] = dict(type='vt.HadamardAttention', kernel_size=7, group_width=4, ghost_scale=False)

architecture = dict(backbone=dict(stages=stages))
