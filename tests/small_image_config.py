"""Lines of a config that make a VT-ResNet-18 on images small and quick to train."""

SMALL_IMAGES = """
model = dict(
    backbone=dict(base_channels=8, stem_channels=8, num_tokens=4, token_channels=32),
    head=dict(num_classes=3, in_channels=32),
)
train_pipeline = [
    dict(type='LoadImageFromFile'), dict(type='RandomResizedCrop', scale=32), dict(type='RandomFlip', prob=0.5),
    dict(type='PackInputs'),
]
test_pipeline = [dict(type='LoadImageFromFile'), dict(type='Resize', scale=32), dict(type='PackInputs')]
train_dataloader = dict(batch_size=4, num_workers=2, dataset=dict(pipeline=train_pipeline))
val_dataloader = test_dataloader = dict(batch_size=4, num_workers=0, dataset=dict(pipeline=test_pipeline))
train_cfg = dict(max_epochs=2)
"""
