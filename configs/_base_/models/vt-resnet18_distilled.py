# VT-ResNet-18 with a teacher and the regularisation of the paper's advanced recipe.
_base_ = ['vt-resnet18.py', 'distilled.py']

model = _base_.distilled
