# VT-ResNet-18 on ImageNet-1k with the paper's advanced recipe (section 5.2).
# Paper: top-1 76.8 (table 8). Not trained here yet.
# bash tools/dist_train.sh configs/vt_resnet/vt-resnet18_8xb256-400e-distill_in1k.py 8
_base_ = [
    '../_base_/models/vt-resnet18.py',
    '../_base_/models/distilled.py',
    '../_base_/datasets/imagenet_bs256_autoaugment.py',
    '../_base_/schedules/rmsprop_bs2048-400e.py',
    '../_base_/default_runtime.py',
]

model = _base_.distilled
