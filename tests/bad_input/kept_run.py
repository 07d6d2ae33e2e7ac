"""A work directory with a finished run, and what must be true of a bad run in it."""

import hashlib

from forked_tools import run_forked
from tool_runner import ROOT, SMALL_CLASSIFIER, assert_one_line

LOGS = '20010101_000000'
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


class KeptRun:
    """A finished run; its name is its work directory."""

    def __init__(self, path):
        self.path = path
        self.before = self.digests()

    def __str__(self):
        return str(self.path)

    def digests(self):
        """Of its checkpoints and logs, by their paths; training that begins moves them to a subfolder."""
        files = [*self.path.rglob('*.pth'), *self.path.rglob('training.json'), *(self.path / LOGS).rglob('*.*')]
        return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def assert_refused(result, message, kept):
    """One line, exit code 1, no traceback, and every checkpoint and log is there as it was."""
    assert_one_line(result, '')
    assert message in result.stderr, result.stderr
    lost = [str(path) for path, digest in kept.before.items() if digest not in kept.digests().values()]
    assert not lost, lost


def train(folder, config, *arguments, **kwargs):
    """Train by a config's text, or by what stands in ``config.py`` already."""
    if config is not None:
        (folder / 'config.py').write_text(config)
    return run_forked('train.py', 'config.py', *arguments, cwd=folder, **kwargs)


def finish_run(folder):
    """A run of one epoch."""
    result = run_forked(
        'train.py',
        ROOT / 'configs/vt_resnet/vt-resnet18-half_digits.py',
        '--work-dir',
        'kept',
        cwd=folder,
        options=[*SMALL_CLASSIFIER, 'train_cfg.max_epochs=1'],
    )
    assert result.returncode == 0, result.stderr
    (log,) = (folder / 'kept').glob('*/*.log')
    log.parent.rename(folder / 'kept' / LOGS)  # a bad run in the same second would have a log of that name
    return KeptRun(folder / 'kept')
