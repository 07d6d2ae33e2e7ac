# Table 5 of the paper: no relation between tokens. Scores: docs/ablations.md.
# python tools/train.py configs/ablations/table5_relation/vt-resnet18-half_no-relation_twin-digits.py
_base_ = '../../vt_resnet/vt-resnet18-half_twin-digits.py'

model = dict(backbone=dict(relation=None))
