# DeiT-S with eight tokens of TokenLearner after block 6, on the embedded digits.
# Top-1 not measured yet.
# PYTHONPATH=. python tools/train.py projects/survey_claims/configs/deit-small_tokenlearner_digits.py
_base_ = '../../../configs/deit/deit-small_digits.py'

learner = dict(type='vt.TokenizerEmbed', tokenizer=dict(type='vt.TokenLearner', num_tokens=8))
first = {**_base_.architecture.backbone.stages[0], 'depth': 6}
second = dict(channels=384, num_heads=6, depth=6, embed=learner, class_tokens=1, norm=True)
model = dict(backbone=dict(stages=[first | dict(class_tokens=0, norm=False), second]))
