# ELSA-Swin-T (Zhou et al., 2021): Swin-T whose first three stages have Hadamard attention of 7x7 neighbours, with the
# shift of the ghost head, instead of windows.
_base_ = 'swin-tiny.py'

stages = _base_.architecture.backbone.stages
for stage in stages[:3]:
    stage['attention'] = dict(type='vt.HadamardAttention', kernel_size=7, group_width=4)

architecture = dict(
    backbone=dict(
        # Its projections are 1x1 convolutions in the authors' code, with PyTorch's initialisation.
        layer_inits=[dict(type='vt.LayerInit', layer='Linear', names=r'stages\.[0-2]\..*qkv$')],
        stages=stages,
    ),
)
