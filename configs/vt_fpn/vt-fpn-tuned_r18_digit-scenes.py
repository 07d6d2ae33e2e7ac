# VT-FPN on the embedded scenes with the tuned recipe: docs/training.md.
# mIoU 91.60, 91.90, 90.61 % (seeds 0, 1, 2), 4.6 min: AMD EPYC, 1 thread, torch 2.14.1.
# vt train vt-fpn-tuned_r18_digit-scenes seed=0
_base_ = [
    'vt-fpn_r18_digit-scenes.py',
    '../_base_/recipes/tuned_scenes.py',
]

optim_wrapper = dict(optimizer=dict(lr=6e-3), paramwise_cfg=_base_.tuned)
