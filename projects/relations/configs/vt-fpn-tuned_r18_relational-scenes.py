# VT-FPN on the relational scenes with the tuned recipe: docs/training.md.
# Scores: ../README.md.
# PYTHONPATH=. python tools/train.py projects/relations/configs/vt-fpn-tuned_r18_relational-scenes.py
_base_ = [
    'vt-fpn_r18_relational-scenes.py',
    '../../../configs/_base_/recipes/tuned_scenes.py',
]

optim_wrapper = dict(optimizer=dict(lr=6e-3), paramwise_cfg=_base_.tuned)
