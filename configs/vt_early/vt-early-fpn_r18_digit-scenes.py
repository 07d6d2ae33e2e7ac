# ResNet-18 at half width with VT-FPN of the paper's first version (arXiv 2006.03677v1) on the embedded scenes, with the
# recipe of its FPN baseline. Not trained here yet.
# vt train vt-early-fpn_r18_digit-scenes seed=0
_base_ = ['../vt_fpn/vt-fpn_r18_digit-scenes.py', '../_base_/models/vt-early.py']

model = dict(neck=_base_.early_neck)
