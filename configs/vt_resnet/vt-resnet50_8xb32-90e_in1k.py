_base_ = [
    '../_base_/models/vt-resnet50.py',
    '../_base_/datasets/imagenet_bs32.py',
    '../_base_/schedules/sgd_bs256-90e.py',
    '../_base_/default_runtime.py',
]
