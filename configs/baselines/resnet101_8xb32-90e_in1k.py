# ResNet-101 on ImageNet-1k with the paper's default recipe. Paper: top-1 77.4 (table 8).
# Not trained here yet.
# bash tools/dist_train.sh configs/baselines/resnet101_8xb32-90e_in1k.py 8
_base_ = [
    '../_base_/models/resnet101.py',
    '../_base_/datasets/imagenet_bs32.py',
    '../_base_/schedules/sgd_bs256-90e.py',
    '../_base_/default_runtime.py',
]
