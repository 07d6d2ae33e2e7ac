# ResNet-18 at half width on the twin digits, for the ablations. Scores: ../ablations.md.
# PYTHONPATH=. python tools/train.py projects/relations/configs/resnet18-half_twin-digits.py
_base_ = [
    '../../../configs/_base_/models/resnet18-half.py',
    '_base_/twin-digits.py',
    '_base_/adamw_bs32-3e.py',
    '_base_/default_runtime.py',
]
