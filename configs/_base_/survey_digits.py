# What the survey's systems have in common on the embedded digits; a leaf says `model = _base_.on_digits`.
_base_ = [
    'datasets/digits.py',
    'schedules/adamw_bs32-15e.py',
    'default_runtime.py',
]

on_digits = dict(
    backbone=dict(image_size=64, drop_path_rate=0.0),
    head=dict(num_classes=10, loss=dict(_delete_=True, type='CrossEntropyLoss', loss_weight=1.0), topk=(1,)),
    train_cfg=dict(_delete_=True),
)
