# Full token-side matrices, above the paper's FLOPs and parameters.
_base_ = 'vt-resnet50_8xb32-90e_in1k.py'

model = dict(backbone=dict(groups=1))
