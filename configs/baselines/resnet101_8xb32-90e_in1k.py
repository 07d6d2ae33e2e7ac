_base_ = [
    '../_base_/models/resnet101.py',
    '../_base_/datasets/imagenet_bs32.py',
    '../_base_/schedules/sgd_bs256-90e.py',
    '../_base_/default_runtime.py',
]
