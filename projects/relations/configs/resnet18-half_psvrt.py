# ResNet-18 at half width on PSVRT. Scores: ../README.md.
# Top-1 90.97, 90.87, 91.16 % (seeds 0, 1, 2), 4.5 min, bfloat16: Intel(R) Xeon(R) Processor, 1 thread, torch 2.14.1.
# PYTHONPATH=. python tools/train.py projects/relations/configs/resnet18-half_psvrt.py
_base_ = [
    '../../../configs/_base_/models/resnet18-half.py',
    '_base_/psvrt.py',
    '_base_/adamw-0.004_bs32-10e.py',
    '_base_/default_runtime.py',
]

model = dict(head=dict(num_classes=2))
