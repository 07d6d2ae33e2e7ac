# PVTv2-B2-Li on the twin digits.
# Top-1 not measured yet.
# python tools/train.py configs/survey/pvtv2-b2-li_twin-digits.py
_base_ = ['../_base_/survey/_twin-digits.py', '../_base_/survey/pvtv2-b2-li.py']

model = _base_.system
