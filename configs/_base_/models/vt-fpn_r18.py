# VT-FPN on torchvision's ResNet-18: visual tokens of all levels in place of the top-down path (paper, section 4.2).
_base_ = 'fpn_r18.py'

model = dict(neck=dict(type='vt.VTFPN', num_tokens=8, token_channels=1024))
