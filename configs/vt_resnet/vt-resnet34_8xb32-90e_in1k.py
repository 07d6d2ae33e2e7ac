# VT-ResNet-34 on ImageNet-1k with the paper's default recipe. Paper: top-1 74.8 (table 2).
# Not trained here yet.
# bash tools/dist_train.sh configs/vt_resnet/vt-resnet34_8xb32-90e_in1k.py 8
_base_ = [
    '../_base_/models/vt-resnet34.py',
    '../_base_/datasets/imagenet_bs32.py',
    '../_base_/schedules/sgd_bs256-90e_clip.py',
    '../_base_/default_runtime.py',
]
