# VT-ResNet-18 on ImageNet-1k with VT modules after stage 5: docs/how-to/other-backbones.md.
# Not trained here yet.
# bash tools/dist_train.sh configs/vt_anywhere/vt-resnet18-tuned-after-5_8xb32-90e_in1k.py 8
_base_ = '../vt_resnet/vt-resnet18-tuned_8xb32-90e_in1k.py'

model = dict(backbone=dict(positions=('after_layer4',)))
