# VT-ResNet-18 at half width on the embedded digits, for the ablations. Scores: projects/relations/ablations.md.
# vt train vt-resnet18-half_digits seed=0
_base_ = [
    '../_base_/models/vt-resnet18-half.py',
    '../_base_/datasets/digits_32x32.py',
    '../_base_/schedules/adamw_bs32-10e.py',
    '../_base_/default_runtime.py',
]
