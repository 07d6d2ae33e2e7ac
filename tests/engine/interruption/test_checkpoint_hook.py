"""A checkpoint goes only after the one that replaces it is there, and no file that another hand has written does."""

import shutil
from pathlib import Path

import pytest
import torch
from engine.interruption.small_runs import checkpoints_in, log_of, train_small
from mmengine.hooks import Hook

from vt.errors import UserError


def train(folder, epochs, **options):
    return train_small(folder, epochs, dict(max_keep_ckpts=1, save_best='mean', rule='greater'), **options)


@pytest.fixture
def run(tmp_path):
    """The work directory of two epochs, which keeps one checkpoint and the best one."""
    train(tmp_path / 'run', 2)
    return tmp_path / 'run'


class FullDisk(Hook):
    """The third checkpoint cannot be written."""

    def before_save_checkpoint(self, runner, checkpoint):
        if runner.epoch == 2:
            raise OSError(28, 'No space left on device')


def test_one_last_and_one_best_checkpoint_are_kept_and_stay_until_the_next_is_written(run):
    best, last = checkpoints_in(run)
    assert best.startswith('best_mean_epoch_')
    assert last == 'epoch_2.pth'
    assert Path((run / 'last_checkpoint').read_text()).name == last
    before = {name: (run / name).read_bytes() for name in (best, last, 'last_checkpoint')}
    with pytest.raises(UserError, match=r'epoch_3\.pth could not be written|No space left'):
        train(run, 3, resume=True, hooks=[FullDisk()])
    assert {name: (run / name).read_bytes() for name in before} == before
    assert checkpoints_in(run) == [best, last]
    train(run, 3, resume=True)
    assert checkpoints_in(run)[1:] == ['epoch_3.pth']


def test_a_copy_goes_on_without_touching_the_original(run, tmp_path):
    shutil.copytree(run, tmp_path / 'copy')
    before = {path: path.read_bytes() for path in run.rglob('*') if path.is_file()}
    train(tmp_path / 'copy', 4, resume=True)
    assert {path: path.read_bytes() for path in run.rglob('*') if path.is_file()} == before
    best, newest = checkpoints_in(tmp_path / 'copy')
    assert newest == 'epoch_4.pth'
    assert best.startswith('best_mean_epoch_')


# Each pair is a name that a checkpoint gives, and what has that name here.
NAMED = ['..', '.', 'my_notes', 'notes.pth', 'best_notes.pth', 'epoch_1.pth', '../mine/epoch_1.pth', 'linked']


def test_a_checkpoint_does_not_decide_what_is_removed(run, tmp_path):
    """Its names are data: of folders, of files, of links, of other checkpoints; also as numbers of steps."""
    for name in ('mine', 'run/my_notes', 'run/epoch_1.pth'):  # the last one has a name of the hook
        (tmp_path / name).mkdir()
        (tmp_path / name / 'notes.txt').write_text('mine')
    for name in ('notes.pth', 'best_notes.pth', 'best_mine_epoch_1.pth', '../mine/epoch_1.pth'):
        (run / name).write_text('mine')
    (run / 'epoch_0.pth').symlink_to(tmp_path / 'mine/epoch_1.pth')
    (run / 'linked').symlink_to(tmp_path / 'mine')
    path = run / 'epoch_2.pth'
    checkpoint = torch.load(path, weights_only=True)
    named = dict(outdated_ckpts=NAMED, keep_ckpt_ids=['../..', *NAMED, 0], last_ckpt='notes.pth', best_ckpt='my_notes')
    checkpoint['message_hub']['runtime_info'] |= named | {'best_ckpt_mean': '..'}
    torch.save(checkpoint, path)
    files = [other for other in tmp_path.rglob('*') if other.is_file() and not other.is_symlink()]
    kept = [other for other in files if other.read_bytes() == b'mine']
    assert len(kept) == 7
    train(run, 3, resume=True)
    assert [other.read_bytes() for other in kept] == [b'mine'] * 7
    assert 'just skip resuming' not in log_of(run)  # mmengine's words about a name without a value
    assert not path.exists()
    assert (run / 'epoch_3.pth').is_file()


@pytest.mark.parametrize('count', [1, 2])
def test_what_was_kept_on_purpose_stays(count, run):
    """A run that kept all checkpoints goes on with one; one more than its number is what a kill has left."""
    best, newest = checkpoints_in(run)
    earlier = [f'epoch_{step}.pth' for step in range(count)]  # beside the newest
    for name in earlier:
        shutil.copy(run / newest, run / name)
    shutil.copy(run / best, run / 'best_mean_epoch_0.pth')
    train(run, 3, resume=True)
    kept = [] if count == 1 else [*earlier, newest]
    assert [name for name in checkpoints_in(run) if not name.startswith('best')] == [*kept, 'epoch_3.pth']
    assert len([name for name in checkpoints_in(run) if name.startswith('best')]) == 1
