# VT-ResNet-18 of the paper's first version (arXiv 2006.03677v1) on the embedded digits, with the recipe of
# VT-ResNet-18.
# Top-1 99.44 % (seeds 0), 2.9 min: AMD EPYC, 1 thread, torch 2.14.1.
# vt train vt-early-resnet18_digits seed=0
_base_ = ['../vt_resnet/vt-resnet18_digits.py', '../_base_/models/vt-early.py']

model = dict(backbone=_base_.early_backbone)
