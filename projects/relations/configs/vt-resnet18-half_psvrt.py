# VT-ResNet-18 at half width on PSVRT. Scores: ../README.md.
# Top-1 50.00, 90.58, 52.25 % (seeds 0, 1, 2), 4.4 min, bfloat16: Intel(R) Xeon(R) Processor, 1 thread, torch 2.14.1.
# PYTHONPATH=. python tools/train.py projects/relations/configs/vt-resnet18-half_psvrt.py
_base_ = [
    '../../../configs/_base_/models/vt-resnet18-half.py',
    '_base_/psvrt.py',
    '../../../configs/_base_/schedules/adamw_bs32-10e.py',  # VT as published does not learn at four times the rate
    '_base_/default_runtime.py',
]

model = dict(head=dict(num_classes=2))
