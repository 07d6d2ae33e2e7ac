# ViT-S whose last six blocks process eight tokens of TokenLearner, which TokenFuser adds back, on the embedded digits.
# Top-1 not measured yet.
# PYTHONPATH=. python tools/train.py projects/survey_claims/configs/vit-tokenlearner_fuser_digits.py
_base_ = '../../../configs/tokenlearner/vit-tokenlearner_digits.py'
custom_imports = dict(imports=['vt', 'projects.survey_claims.parts'])

parts = dict(tokenizer=dict(type='vt.TokenLearner'), fuser=dict(type='vt.TokenFuser'))
fused = dict(type='vt.TokenizedBlock', channels=384, num_heads=6, depth=6, norm=True, **parts)
model = dict(backbone=dict(stages=[_base_.architecture.backbone.stages[0], fused]))
