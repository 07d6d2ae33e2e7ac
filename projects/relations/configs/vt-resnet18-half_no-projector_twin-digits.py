# Table 7 of the paper: no projector: tokens are not added to the map. Scores: ../ablations.md.
# PYTHONPATH=. python tools/train.py projects/relations/configs/vt-resnet18-half_no-projector_twin-digits.py
_base_ = 'vt-resnet18-half_twin-digits.py'

model = dict(backbone=dict(projector=None))
