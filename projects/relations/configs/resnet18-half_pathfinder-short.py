# ResNet-18 at half width on Pathfinder, short paths. Scores: ../README.md.
# Top-1 72.22, 66.06, 57.81 % (seeds 0, 1, 2), 0.9 min, bfloat16: Intel(R) Xeon(R) Processor, 1 thread, torch 2.14.1.
# PYTHONPATH=. python tools/train.py projects/relations/configs/resnet18-half_pathfinder-short.py
_base_ = [
    '../../../configs/_base_/models/resnet18-half.py',
    '_base_/pathfinder-short.py',
    '_base_/adamw-0.004_bs32-10e.py',
    '_base_/default_runtime.py',
]

model = dict(backbone=dict(strides=(1, 2, 1, 2)), head=dict(num_classes=2))  # a map of 8x8 pixels
