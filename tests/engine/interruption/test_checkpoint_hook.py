"""A checkpoint goes only after the one that replaces it is there."""

import shutil
from pathlib import Path

import pytest
import torch
from checkpoints.small_models import build_runner
from forked_tools import run_forked
from mmengine.hooks import CheckpointHook
from run_comparison import differences, final_checkpoint
from tool_runner import ROOT, assert_one_line

from vt.errors import UserError

CONFIG = Path(__file__).parent / 'epochs.py'
LIMITED = ROOT / 'tests/bad_input/limited_tool.py'
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
    options = [*FEW, KEEP_ONE, 'train_cfg.max_epochs=3']
    arguments = [CONFIG, '--work-dir', 'run', '--resume']
    result = run_forked(LIMITED, 'file-size', ROOT / 'tools/train.py', *arguments, cwd=one_kept, options=options)
    assert_one_line(result, 'epoch_3.pth could not be written')
    assert {name: (one_kept / 'run' / name).read_bytes() for name in before} == before
    assert names(one_kept) == sorted(set(before) - {'last_checkpoint'})
    result = train(one_kept, '--resume', options=[KEEP_ONE, 'train_cfg.max_epochs=3'])
    assert result.returncode == 0, result.stderr
    assert names(one_kept)[1:] == ['epoch_3.pth']


class Elsewhere(CheckpointHook):
    """A hook of a user, a subclass of mmengine's."""


@pytest.mark.parametrize(
    ('options', 'expected'),
    [
        ({}, None),
        (dict(by_epoch=False, max_keep_ckpts=1), None),
        (dict(out_dir='elsewhere'), 'out_dir'),
        (dict(filename_tmpl='step_{}.pth'), 'filename_tmpl'),
        (dict(published_keys=['meta'], filename_tmpl='iter_{}.pth'), 'filename_tmpl, published_keys'),
    ],
)
def test_a_hook_of_a_user_writes_into_the_work_directory(options, expected, tmp_path):
    runner = build_runner(tmp_path, dict(type='SGD', lr=0.1), default_hooks=dict(checkpoint=None))
    runner.register_hook(Elsewhere(**options))
    if expected is None:
        runner.train()
        return
    with pytest.raises(UserError, match=rf'^Elsewhere: checkpoints are epoch_N.*: remove {expected}$'):
        runner.train()
    assert not [*tmp_path.glob('**/*.pth')]


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


# Each pair is a name that a checkpoint gives, and what has that name here.
NAMED = ['..', '.', 'my_notes', 'notes.pth', 'best_notes.pth', 'epoch_1.pth', '../mine/epoch_1.pth', 'linked']


def test_a_checkpoint_does_not_decide_what_is_removed(one_kept, tmp_path):
    """Its names are data: of folders, of files, of links, of other checkpoints; also as numbers of steps."""
    shutil.copytree(one_kept / 'run', tmp_path / 'run')
    last = max(int(path.stem.split('_')[1]) for path in (tmp_path / 'run').glob('epoch_*.pth'))
    for name in ('mine', 'run/my_notes', f'run/epoch_{last - 1}.pth'):  # the last one has a name of the hook
        (tmp_path / name).mkdir()
        (tmp_path / name / 'notes.txt').write_text('mine')
    for name in ('notes.pth', 'best_notes.pth', 'best_mine_epoch_1.pth', '../mine/epoch_1.pth'):
        (tmp_path / 'run' / name).write_text('mine')
    (tmp_path / 'run/epoch_0.pth').symlink_to(tmp_path / 'mine/epoch_1.pth')
    (tmp_path / 'run/linked').symlink_to(tmp_path / 'mine')
    own = {*(one_kept / 'run').rglob('*')}
    kept = {path: path.read_bytes() for path in tmp_path.rglob('*') if path.is_file()}
    kept = {path: data for path, data in kept.items() if one_kept / path.relative_to(tmp_path) not in own}
    path = tmp_path / f'run/epoch_{last}.pth'
    checkpoint = torch.load(path, weights_only=True)
    named = dict(outdated_ckpts=NAMED, keep_ckpt_ids=['../..', *NAMED, 0], last_ckpt='notes.pth', best_ckpt='my_notes')
    checkpoint['message_hub']['runtime_info'] |= named | {'best_ckpt_accuracy/top1': '..'}
    torch.save(checkpoint, path)
    result = train(tmp_path, '--resume', options=[KEEP_ONE, f'train_cfg.max_epochs={last + 1}'])
    assert result.returncode == 0, result.stderr
    assert {path: path.read_bytes() for path in kept} == kept
    assert 'just skip resuming' not in result.stdout  # mmengine's words about a name without a value
    assert (tmp_path / 'run/epoch_0.pth').is_symlink()
    assert not path.exists()
    assert (tmp_path / f'run/epoch_{last + 1}.pth').is_file()


def test_what_was_kept_on_purpose_stays(one_kept, tmp_path):
    """A run that kept all checkpoints goes on with one; one more than its number is what a kill has left."""
    shutil.copytree(one_kept / 'run', tmp_path / 'run')
    best, newest = names(tmp_path)
    last = int(newest[6:-4])
    for count in (1, 2):  # earlier checkpoints beside the newest
        folder = tmp_path / str(count)
        shutil.copytree(tmp_path / 'run', folder / 'run')
        for step in range(count):
            shutil.copy(folder / 'run' / newest, folder / f'run/epoch_{step}.pth')
        shutil.copy(folder / 'run' / best, folder / 'run/best_accuracy_top1_epoch_0.pth')
        result = train(folder, '--resume', options=[KEEP_ONE, f'train_cfg.max_epochs={last + 1}'])
        assert result.returncode == 0, result.stderr
        kept = [] if count == 1 else [f'epoch_{step}.pth' for step in range(count)] + [newest]
        assert names(folder)[1:] == sorted([*kept, f'epoch_{last + 1}.pth'])
        assert len([name for name in names(folder) if name.startswith('best')]) == 1
