# DeiT-S with a distillation token on the twin digits, which learns the decisions of a small ResNet-18.
# Top-1 not measured yet.
# python tools/train.py configs/baselines/resnet18-half_twin-digits.py
# python tools/train.py configs/survey/deit-small-distilled_twin-digits.py
_base_ = ['../_base_/survey/_twin-digits.py', '../_base_/survey/deit-small-distilled.py']

model = _base_.system
model['teacher'] = dict(
    type='ImageClassifier',
    backbone=dict(type='ResNet', depth=18, stem_channels=32, base_channels=32, strides=(1, 1, 1, 2)),
    neck=dict(type='GlobalAveragePooling'),
    head=dict(type='LinearClsHead', num_classes=10, in_channels=256),
)
model['teacher_checkpoint'] = 'work_dirs/resnet18-half_twin-digits/epoch_3.pth'
model['teacher_size'] = 32
