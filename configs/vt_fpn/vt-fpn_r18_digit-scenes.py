# ResNet-18 at half width with VT-FPN on the embedded scenes, with the recipe of its FPN baseline.
# mIoU 90.09, 89.59, 90.41 % (seeds 0, 1, 2), 5.7 min: AMD EPYC, 1 thread, torch 2.14.1.
# vt train vt-fpn_r18_digit-scenes seed=0
_base_ = '../baselines/fpn_r18_digit-scenes.py'

model = dict(neck=dict(type='vt.VTFPN', num_tokens=8, token_channels=1024))
