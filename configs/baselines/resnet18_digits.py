_base_ = [
    '../_base_/models/resnet18.py',
    '../_base_/datasets/digits.py',
    '../_base_/schedules/adamw_bs32-15e.py',
    '../_base_/default_runtime.py',
]

model = dict(head=dict(num_classes=10, topk=(1,)))
