"""Configs of small runs."""

from forked_tools import run_forked
from tool_runner import ROOT

DIGITS = f"""
_base_ = '{ROOT}/configs/vt_resnet/vt-resnet18-half_digits.py'
model = dict(backbone=dict(num_tokens=4, token_channels=64), head=dict(in_channels=64))
train_dataloader = dict(dataset=dict(indices=64))
val_dataloader = dict(dataset=dict(indices=32))
train_cfg = dict(max_epochs=1)
"""
# A folder of images; {loader} and {dataset} are settings of both splits.
FOLDER = f"""
_base_ = '{ROOT}/configs/vt_resnet/vt-resnet18-half_digits.py'
model = dict(
    backbone=dict(num_tokens=4, token_channels=64), head=dict(in_channels=64, num_classes=2, topk=(1,))
)
data_preprocessor = dict(num_classes=2)
train_cfg = dict(max_epochs=1)
pipeline = [dict(type='LoadImageFromFile'), dict(type='Resize', scale=32), dict(type='PackInputs')]
dataset = dict(_delete_=True, type='CustomDataset', data_root='data', data_prefix='images', pipeline=pipeline)
train_dataloader = val_dataloader = test_dataloader = dict(batch_size=4, dataset=dataset)
"""
SCENES = f"""
_base_ = '{ROOT}/configs/vt_fpn/vt-fpn_r18_digit-scenes.py'
pipeline = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations'), dict(type='PackSegInputs')]
dataset = dict(
    _delete_=True, type='BaseSegDataset', data_root='data', data_prefix=dict(img_path='images', seg_map_path='masks'),
    img_suffix='.png', metainfo=dict(classes=tuple('abcdefghijk')), pipeline=pipeline,
)
train_dataloader = val_dataloader = test_dataloader = dict(batch_size=4, dataset=dataset)
train_cfg = dict(max_iters=1, val_interval=1)
"""


def train(folder, config, *arguments, **kwargs):
    """Train by a config's text, or by what stands in ``config.py`` already."""
    if config is not None:
        (folder / 'config.py').write_text(config)
    return run_forked('train.py', 'config.py', *arguments, cwd=folder, **kwargs)
