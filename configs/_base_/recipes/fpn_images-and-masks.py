# FPN on any folder of images and masks, with the recipe of VT-FPN but for its rates of tokens.
_base_ = 'vt-fpn_images-and-masks.py'

rates = dict(_delete_=True, custom_keys=dict(backbone=dict(lr_mult=0.1)))
optim_wrapper = dict(paramwise_cfg=rates)
