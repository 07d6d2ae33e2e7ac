# Table 5 of the paper: no relation between tokens. Scores: ../ablations.md.
# PYTHONPATH=. python tools/train.py projects/relations/configs/vt-resnet18-half_no-relation_twin-digits.py
_base_ = 'vt-resnet18-half_twin-digits.py'

model = dict(backbone=dict(relation=None))
