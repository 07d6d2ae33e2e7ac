# VT-ResNet-18 on ImageNet-1k with the tuned recipe: docs/training.md.
# Not trained here yet.
# bash tools/dist_train.sh configs/vt_resnet/vt-resnet18-tuned_8xb32-90e_in1k.py 8
_base_ = [
    'vt-resnet18_8xb32-90e_in1k.py',
    '../_base_/recipes/tuned_sgd.py',
]

optim_wrapper = dict(paramwise_cfg=_base_.tuned)
