# FPN on the relational scenes, where the class of a digit depends on whether a distant digit is equal. The backbone is
# pretrained on the digit scenes and frozen, because no model learns the task from scratch in thousands of iterations.
# Scores: ../README.md.
# python tools/train.py configs/baselines/fpn_r18_digit-scenes.py
# PYTHONPATH=. python tools/train.py projects/relations/configs/fpn_r18_relational-scenes.py
_base_ = '../../../configs/baselines/fpn_r18_digit-scenes.py'

custom_imports = dict(imports=['vt', 'projects.relations.tasks'])

checkpoint = 'work_dirs/fpn_r18_digit-scenes/iter_1200.pth'
model = dict(
    backbone=dict(
        frozen_stages=4,
        init_cfg=dict(_delete_=True, type='Pretrained', checkpoint=checkpoint, prefix='backbone.'),
    ),
    decode_head=dict(num_classes=3),
)

train_dataloader = dict(dataset=dict(type='vt.RelationalDigitScenes'))
val_dataloader = dict(dataset=dict(type='vt.RelationalDigitScenes'))
test_dataloader = val_dataloader

train_cfg = dict(max_iters=2400, val_interval=1200)
default_hooks = dict(checkpoint=dict(interval=1200))
