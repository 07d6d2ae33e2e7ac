# VT-ResNet-50 of the paper's first version (arXiv 2006.03677v1) on ImageNet-1k, with the recipe of VT-ResNet-50.
# Not trained here yet.
# bash tools/dist_train.sh configs/vt_early/vt-early-resnet50_8xb32-90e_in1k.py 8
_base_ = ['../vt_resnet/vt-resnet50_8xb32-90e_in1k.py', '../_base_/models/vt-early.py']

model = dict(backbone=_base_.early_backbone)
