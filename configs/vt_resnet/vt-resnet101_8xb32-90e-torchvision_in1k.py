# VT-ResNet-101 on ImageNet-1k with torchvision's recipe of ResNets: weight decay 1e-4 instead of the paper's 4e-5.
# Not trained here yet.
# Source: pytorch/vision 017e9b9, references/classification/train.py.
# Remaining: gradients are clipped at 1, so that the rate doesn't break VT's modules.
# bash tools/dist_train.sh configs/vt_resnet/vt-resnet101_8xb32-90e-torchvision_in1k.py 8
_base_ = [
    '../_base_/models/vt-resnet101.py',
    '../_base_/datasets/imagenet_bs32_pillow.py',
    '../_base_/schedules/sgd_bs256-90e_clip.py',
    '../_base_/default_runtime.py',
]

optim_wrapper = dict(optimizer=dict(weight_decay=1e-4))
