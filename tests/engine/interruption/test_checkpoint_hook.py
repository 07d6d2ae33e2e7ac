"""A checkpoint goes only after the one that replaces it is there."""

import shutil
from pathlib import Path

import pytest
import torch
from forked_tools import run_forked
from run_comparison import differences, final_checkpoint
from tool_runner import assert_one_line

CONFIG = Path(__file__).parent / 'epochs.py'
FEW = ['train_cfg.val_interval=1', 'train_dataloader.num_workers=0', 'train_dataloader.persistent_workers=False']
KEEP_ONE = 'default_hooks.checkpoint.max_keep_ckpts=1'


def train(folder, *arguments, options=()):
    return run_forked('train.py', CONFIG, '--work-dir', 'run', *arguments, cwd=folder, options=[*FEW, *options])


def names(folder):
    return sorted(path.name for path in (folder / 'run').glob('*.pth'))


@pytest.fixture(scope='module')
def one_kept(tmp_path_factory):
    """A folder with a work directory of two epochs that keeps one checkpoint, and the best one."""
    folder = tmp_path_factory.mktemp('one kept')
    result = train(folder, options=[KEEP_ONE, 'train_cfg.max_epochs=2'])
    assert result.returncode == 0, result.stderr
    return folder


def test_one_last_and_one_best_checkpoint_are_kept(one_kept):
    best, last = names(one_kept)
    assert best.startswith('best_accuracy_top1_epoch_')
    assert last == 'epoch_2.pth'
    assert Path((one_kept / 'run/last_checkpoint').read_text()).name == last


def test_what_cannot_be_written_leaves_what_is_there(one_kept):
    before = {name: (one_kept / 'run' / name).read_bytes() for name in [*names(one_kept), 'last_checkpoint']}
    in_the_way = one_kept / 'run/.epoch_3.pth.part'
    in_the_way.mkdir()
    result = train(one_kept, '--resume', options=[KEEP_ONE, 'train_cfg.max_epochs=3'])
    assert_one_line(result, 'epoch_3.pth could not be written')
    assert {name: (one_kept / 'run' / name).read_bytes() for name in before} == before
    assert names(one_kept) == sorted(set(before) - {'last_checkpoint'})
    in_the_way.rmdir()
    result = train(one_kept, '--resume', options=[KEEP_ONE, 'train_cfg.max_epochs=3'])
    assert result.returncode == 0, result.stderr
    assert names(one_kept)[1:] == ['epoch_3.pth']


def test_the_smallest_difference_is_seen(one_kept):
    first, second = final_checkpoint(one_kept / 'run'), final_checkpoint(one_kept / 'run')
    assert differences(first, second) == []
    second['optimizer']['state'][0]['exp_avg'][0, 0, 0, 0] *= 1 + torch.finfo(torch.float32).eps
    assert differences(first, second) == ['.optimizer.state.0.exp_avg']


def test_a_copy_goes_on_without_touching_the_original(one_kept, tmp_path):
    shutil.copytree(one_kept / 'run', tmp_path / 'run')
    before = {path: path.read_bytes() for path in (one_kept / 'run').glob('*.pth')}
    last = max(int(path.stem.split('_')[1]) for path in before if path.name.startswith('epoch_'))
    result = train(tmp_path, '--resume', options=[KEEP_ONE, f'train_cfg.max_epochs={last + 2}'])
    assert result.returncode == 0, result.stderr
    assert {path: path.read_bytes() for path in before} == before
    best, newest = names(tmp_path)
    assert newest == f'epoch_{last + 2}.pth'
    assert best.startswith('best_accuracy_top1_epoch_')
