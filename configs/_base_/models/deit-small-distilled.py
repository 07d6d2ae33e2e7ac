# DeiT-S with a distillation token (Touvron et al., ICML 2021): the teacher is a RegNetY-16GF, hard labels.
# Needs timm, which downloads the teacher when training starts: pip install timm.
_base_ = 'deit-small.py'

stages = _base_.architecture.backbone.stages
stages[0]['class_tokens'] = 2

architecture = dict(
    type='vt.DistilledClassifier',
    teacher=dict(
        type='TimmClassifier',
        model_name='regnety_160.deit_in1k',
        pretrained=True,
        data_preprocessor=dict(mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375], to_rgb=True),
    ),
    hard=True,  # False: soft labels, with temperature=3.0 in the paper
    distillation_weight=0.5,
    cls_weight=0.5,
    backbone=dict(stages=stages),
    head=dict(type='vt.DistillationTokenHead'),
)
