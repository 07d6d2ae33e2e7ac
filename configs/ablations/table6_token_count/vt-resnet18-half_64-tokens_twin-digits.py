# Table 6 of the paper: 64 tokens instead of 16. Scores: docs/ablations.md.
# python tools/train.py configs/ablations/table6_token_count/vt-resnet18-half_64-tokens_twin-digits.py
_base_ = '../../vt_resnet/vt-resnet18-half_twin-digits.py'

model = dict(backbone=dict(num_tokens=64))
