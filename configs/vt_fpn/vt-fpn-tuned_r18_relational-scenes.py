# VT-FPN on the relational scenes with the tuned recipe: docs/training.md.
# Scores: docs/models.md.
# python tools/train.py configs/vt_fpn/vt-fpn-tuned_r18_relational-scenes.py --cfg-options randomness.seed=0
_base_ = [
    'vt-fpn_r18_relational-scenes.py',
    '../_base_/recipes/tuned_scenes.py',
]

optim_wrapper = dict(optimizer=dict(lr=6e-3), paramwise_cfg=_base_.tuned)
