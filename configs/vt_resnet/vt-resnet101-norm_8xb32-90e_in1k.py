# VT-ResNet-101 on ImageNet-1k, with normalised steps: docs/training.md.
# Not trained here yet.
# bash tools/dist_train.sh configs/vt_resnet/vt-resnet101-norm_8xb32-90e_in1k.py 8
_base_ = [
    'vt-resnet101_8xb32-90e_in1k.py',
    '../_base_/models/normalised.py',
]

model = dict(backbone=_base_.normalised_sgd)
