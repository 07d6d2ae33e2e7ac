# CaiT-S24 with 16 tokens of VT, which attend to each other, instead of class attention, on the embedded digits.
# Top-1 not measured yet.
# PYTHONPATH=. python tools/train.py projects/survey_claims/configs/cait-s24_vt-tokens_digits.py
_base_ = '../../../configs/cait/cait-s24_digits.py'

tokens = dict(type='vt.TokenizerEmbed', tokenizer=dict(type='vt.FilterTokenizer', num_tokens=16))
second = dict(channels=384, depth=2, embed=tokens, norm=True)
model = dict(backbone=dict(out_type='average', stages=[_base_.architecture.backbone.stages[0], second]))
