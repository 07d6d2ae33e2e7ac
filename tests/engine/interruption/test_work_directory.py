"""A work directory belongs to one run at a time, and the files of an earlier one are never overwritten."""

import os
import shutil
import signal
import socket
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from checkpoints.small_models import build_runner
from engine.interruption.test_preemption import wait_for
from forked_tools import ForkedTool, run_forked
from process_groups import start_processes
from tool_runner import assert_one_line

from vt.engine.interruption.work_directory import use_work_directory
from vt.errors import UserError

CONFIG = Path(__file__).parent / 'epochs.py'
FEW = ['train_cfg.max_epochs=2', 'train_dataloader.num_workers=0', 'train_dataloader.persistent_workers=False']
LONG = ['train_cfg.max_epochs=1000']


def train(folder, *arguments, options=(), env=None):
    arguments = [CONFIG, '--skip-data-check', '--work-dir', 'run', *arguments]
    return run_forked('train.py', *arguments, cwd=folder, options=[*FEW, *options], env=env)


def start(folder, *arguments, options=()):
    arguments = [CONFIG, '--skip-data-check', '--work-dir', 'run', *arguments]
    return ForkedTool('train.py', *arguments, cwd=folder, options=[*FEW, *options])


def kill(tool):
    tool.send_signal(signal.SIGKILL)
    tool.wait()


@pytest.fixture(scope='module')
def finished(tmp_path_factory):
    """A folder with the work directory of a finished run."""
    folder = tmp_path_factory.mktemp('finished')
    result = train(folder)
    assert result.returncode == 0, result.stderr
    return folder


@pytest.fixture
def used(finished, tmp_path):
    shutil.copytree(finished / 'run', tmp_path / 'run')
    return tmp_path


def files(folder):
    """Names and contents of a run's files."""
    patterns = ('*.pth', '*.json', '*.py', 'last_checkpoint')
    return {path.name: path.read_bytes() for pattern in patterns for path in folder.glob(pattern)}


USED = 'run has files of an earlier run (training.json): '


def test_a_new_run_is_refused_where_an_earlier_one_lies(used):
    """Also one from its weights."""
    before = files(used / 'run')
    assert before.keys() >= {'epoch_1.pth', 'epoch_2.pth', 'epochs.py', 'last_checkpoint', 'training.json'}
    message = f'{USED}--resume continues from epoch_2.pth; or choose another --work-dir'
    assert_one_line(train(used), message)
    assert_one_line(train(used, options=['load_from=run/epoch_2.pth']), message)
    assert files(used / 'run') == before


def test_a_training_in_python_is_refused_too(tmp_path):
    build_runner(tmp_path, dict(type='SGD', lr=0.1)).train()
    before = files(tmp_path)
    with pytest.raises(UserError, match=r'has files of an earlier run \(epoch_1\.pth\): --resume continues from'):
        build_runner(tmp_path, dict(type='SGD', lr=0.1)).train()
    assert files(tmp_path) == before


def test_a_training_in_python_resumes_from_the_newest_checkpoint(tmp_path, monkeypatch):
    """Whether or not there is ``last_checkpoint``; without a checkpoint it begins as any other run."""
    begun = []
    monkeypatch.setattr('vt.engine.runner.load_own_parts', begun.append)
    for epochs in (1, 2):
        (tmp_path / 'last_checkpoint').unlink(missing_ok=True)
        options = dict(resume=True, epochs=epochs, custom_hooks=[dict(type='vt.ResumeHook')])
        build_runner(tmp_path, dict(type='SGD', lr=0.1), **options).train()
    assert len(begun) == 1
    assert sum('WARNING - There is nothing to resume' in path.read_text() for path in tmp_path.rglob('*.log')) == 1
    assert sum('resumed epoch: 1, iter: 2' in path.read_text() for path in tmp_path.rglob('*.log')) == 1
    assert torch.load(tmp_path / 'epoch_2.pth', weights_only=True)['meta']['iter'] == 4


EARLIER = {'epoch_1.pth': 5, 'epoch_2.pth': 10}
REFUSED = 'run has files of an earlier run'


@pytest.mark.parametrize(
    ('lying', 'asked', 'expected'),
    [
        ({}, None, None),
        ({}, 'auto', None),
        ({}, 'other', 'other/epoch_7.pth'),
        ({}, 'other/epoch_7.pth', 'other/epoch_7.pth'),
        ({}, 'https://host/epoch_7.pth', 'https://host/epoch_7.pth'),
        ({'notes.pth': 7, 'epoch_x.pth': 7, 'my_epoch_9.pth': 7, 'epoch_09.pth': 7}, None, None),
        (EARLIER, 'auto', 'run/epoch_2.pth'),
        (EARLIER, 'run', 'run/epoch_2.pth'),
        (EARLIER, 'run/epoch_2.pth', 'run/epoch_2.pth'),
        (EARLIER | {'interrupted_iter_12.pth': 12}, 'auto', 'run/interrupted_iter_12.pth'),
        (EARLIER, None, f'{REFUSED} (epoch_2.pth): --resume continues from epoch_2.pth; or choose another --work-dir'),
        (EARLIER, 'run/epoch_1.pth', REFUSED),
        (EARLIER | {'epoch_3.pth': 0}, 'run/epoch_3.pth', 'are not those of a checkpoint; --resume continues from'),
        (EARLIER, 'other/epoch_7.pth', REFUSED),
        (EARLIER, 'https://host/epoch_7.pth', REFUSED),
        ({'interrupted_iter_7.pth': 7}, None, REFUSED),
        ({'best_val_loss_epoch_2.pth': 10}, 'auto', f'{REFUSED} (best_val_loss_epoch_2.pth): it has no checkpoint to'),
        ({}, 'run', '--resume run: the folder has no checkpoint'),
        ({}, 'other/epoch_8.pth', 'there is no checkpoint to resume from other/epoch_8.pth'),
    ],
)
def test_where_a_run_starts(lying, asked, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, step in ({f'run/{name}': step for name, step in lying.items()} | {'other/epoch_7.pth': 35}).items():
        Path(name).parent.mkdir(exist_ok=True)
        torch.save(dict(meta=dict(epoch=step // 5, iter=step)), name) if step else Path(name).write_bytes(b'damaged')
    if expected is None or (expected.endswith('.pth') and ' ' not in expected):
        with use_work_directory('run', asked) as (checkpoint, _):
            assert checkpoint == expected
    else:
        with pytest.raises(UserError) as error, use_work_directory('run', asked):
            pass
        assert expected in str(error.value)


@pytest.fixture
def job(tmp_path, monkeypatch):
    """Run a block as a job, at its start and restarted, and return what it starts from."""

    def start(name, restarts, end=None):
        monkeypatch.setenv('TORCHELASTIC_RUN_ID', name)
        monkeypatch.setenv('TORCHELASTIC_RESTART_COUNT', str(restarts))
        with suppress(KeyError), use_work_directory(str(tmp_path), None) as (checkpoint, _):
            torch.save(dict(meta=dict(epoch=1, iter=5)), tmp_path / 'epoch_1.pth')
            if end is not None:
                raise end
        return checkpoint and Path(checkpoint).name

    return start


def test_a_restart_continues_what_its_own_job_has_written(job):
    """Not an earlier run, also after it was refused for that one."""
    assert job('first', 0, end=KeyError()) is None
    assert job('first', 1, end=KeyError()) == 'epoch_1.pth'
    for name in ('second', 'first'):
        with pytest.raises(UserError, match='has files of an earlier run'):
            job(name, 1)


def test_a_restart_does_not_continue_a_finished_run_of_the_same_name(job):
    assert job('none', 0) is None
    with pytest.raises(UserError, match='has files of an earlier run'):
        job('none', 1)


def test_a_restart_that_was_killed_while_it_looked_for_checkpoints_continues(job, monkeypatch):
    assert job('first', 0, end=KeyError()) is None
    with monkeypatch.context() as killed:
        killed.setattr('vt.engine.interruption.work_directory.find_newest_checkpoint', lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            job('first', 1)
    assert job('first', 2) == 'epoch_1.pth'


def test_a_run_without_the_settings_of_its_checkpoint_is_refused(used):
    for path in (used / 'run').glob('*.pth'):
        checkpoint = torch.load(path, weights_only=True)
        del checkpoint['meta']['settings']
        torch.save(checkpoint, path)
    result = train(used, '--resume', options=['train_cfg.max_epochs=3'])
    assert_one_line(result, 'the checkpoint has no settings of its run (vt.ResumeHook): start from its weights')


def test_links_in_a_work_directory_are_not_followed(used):
    (used / 'mine').write_text('mine')
    for name in ('last_checkpoint', 'training.json', 'epochs.py', 'epoch_1.pth', 'epoch_2.pth', 'epoch_3.pth'):
        (used / 'run' / name).unlink(missing_ok=True)
        (used / 'run' / name).symlink_to(used / 'mine')
    assert_one_line(train(used), USED)
    for name in ('training.json', 'epoch_1.pth', 'epoch_2.pth', 'epoch_3.pth', 'best_accuracy_top1_epoch_2.pth'):
        (used / 'run' / name).unlink()
    result = train(used)
    assert result.returncode == 0, result.stderr
    assert (used / 'mine').read_text() == 'mine'
    assert not any(path.is_symlink() for path in (used / 'run').iterdir())
    (used / 'run/run.lock').unlink()
    (used / 'run/run.lock').symlink_to(used / 'mine')
    assert_one_line(train(used), 'Too many levels of symbolic links: run/run.lock')
    assert (used / 'mine').read_text() == 'mine'


@pytest.mark.parametrize('count', [1, 2])
def test_two_trainings_of_one_folder(count, tmp_path):
    """One of two that start together is refused in a line; when the other is killed, the folder is free."""
    arguments = [CONFIG, '--skip-data-check', '--work-dir', 'run']
    groups = [start_processes(count, 'train.py', *arguments, cwd=tmp_path, options=[*FEW, *LONG]) for _ in range(2)]
    while all(group[0].process.is_alive() for group in groups):
        groups[0][0].process.join(0.05)
    refused, going = sorted(groups, key=lambda group: group[0].process.is_alive())
    name = f'run is in use by another training (process {going[0].process.pid} on {socket.gethostname()} since '
    first, *others = [run.wait() for run in refused]
    assert_one_line(first, name)
    for result in others:
        assert_one_line(result, 'stopped because another process failed')
    wait_for(going[0], 'Epoch(train)')
    assert_one_line(train(tmp_path, '--resume'), name)
    for run in going:
        kill(run)
    assert train(tmp_path, '--resume').returncode == 0


def test_workers_that_are_left_behind_do_not_hold_the_folder(tmp_path):
    options = [*LONG, 'train_dataloader.num_workers=2', 'train_dataloader.persistent_workers=True']
    run = start(tmp_path, options=options)
    wait_for(run, 'Epoch(train)')
    children = Path(f'/proc/{run.process.pid}/task/{run.process.pid}/children').read_text().split()
    assert len(children) >= 2
    for child in children:
        os.kill(int(child), signal.SIGSTOP)
    kill(run)
    try:
        assert train(tmp_path, '--resume').returncode == 0
    finally:
        for child in children:
            os.kill(int(child), signal.SIGKILL)
