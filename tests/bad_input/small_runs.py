"""Configs of small runs."""

import itertools

from tool_runner import ROOT, assert_one_line, call

DIGITS = f"""
_base_ = '{ROOT}/configs/vt_resnet/vt-resnet18-half_digits.py'
model = dict(backbone=dict(num_tokens=4, token_channels=64), head=dict(in_channels=64))
train_dataloader = dict(dataset=dict(indices=64))
val_dataloader = test_dataloader = dict(dataset=dict(indices=32))
train_cfg = dict(max_epochs=1)
"""
# A folder of images in two classes, for both splits.
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
_numbers = itertools.count()


def refuse(folder, text, *arguments, options=()):
    """Return the line on standard error with which training by a config's text ends; it wrote no checkpoint."""
    name = f'c{next(_numbers)}'
    (folder / f'{name}.py').write_bytes(text if isinstance(text, bytes) else text.encode())
    result = call('train.py', f'{name}.py', *arguments, cwd=folder, options=options)
    assert_one_line(result, '')
    assert '(train)' not in result.stdout
    assert not [*folder.glob(f'work_dirs/{name}/*.pth')]
    return next(line for line in result.stderr.splitlines() if line.startswith('error: '))


def train(folder, config, *arguments, **kwargs):
    """Train in this process by a config's text."""
    (folder / 'config.py').write_text(config)
    return call('train.py', 'config.py', *arguments, cwd=folder, **kwargs)
