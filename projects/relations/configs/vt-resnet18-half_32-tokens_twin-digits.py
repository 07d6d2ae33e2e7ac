# Table 6 of the paper: 32 tokens instead of 16. Scores: ../ablations.md.
# PYTHONPATH=. python tools/train.py projects/relations/configs/vt-resnet18-half_32-tokens_twin-digits.py
_base_ = 'vt-resnet18-half_twin-digits.py'

model = dict(backbone=dict(num_tokens=32))
