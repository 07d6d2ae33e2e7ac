# VT-ResNet-18 at half width on Pathfinder, long paths. Scores: ../README.md.
# Top-1 61.33, 54.93, 50.15 % (seeds 0, 1, 2), 3.9 min, bfloat16: Intel(R) Xeon(R) Processor, 1 thread, torch 2.14.1.
# PYTHONPATH=. python tools/train.py projects/relations/configs/vt-resnet18-half_pathfinder-long.py
_base_ = [
    '../../../configs/_base_/models/vt-resnet18-half.py',
    '_base_/pathfinder-long.py',
    '../../../configs/_base_/schedules/adamw_bs32-10e.py',  # VT as published does not learn at four times the rate
    '_base_/default_runtime.py',
]

model = dict(backbone=dict(strides=(1, 2, 1, 2)), head=dict(num_classes=2))  # a map of 8x8 pixels
