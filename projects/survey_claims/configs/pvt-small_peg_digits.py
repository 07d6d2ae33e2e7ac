# PVT-S with CPVT's positions, a convolution after the first block of each stage, on the embedded digits.
# Top-1 not measured yet.
# PYTHONPATH=. python tools/train.py projects/survey_claims/configs/pvt-small_peg_digits.py
_base_ = '../../../configs/pvt/pvt-small_digits.py'

peg = dict(type='vt.OnMap', combine='add')  # class tokens stay
model = dict(backbone=dict(every_stage=dict(position=None, peg=peg)))
