"""A work directory belongs to one run at a time, and the files of an earlier one are never overwritten."""

import signal
import socket
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from engine.interruption.small_runs import CONFIG, FEW, log_of, train_few, train_small
from process_groups import start_processes
from tool_runner import assert_one_line

from vt.engine.run.work_directory import use_work_directory
from vt.errors import UserError

ARGUMENTS = ['train.py', CONFIG, '--skip-data-check', '--work-dir', 'run']
LONG = ['train_cfg.max_epochs=1000']


def files(folder):
    """Names and contents of a run's files."""
    patterns = ('*.pth', '*.json', '*.py', 'last_checkpoint')
    return {path.name: path.read_bytes() for pattern in patterns for path in folder.glob(pattern)}


USED = 'run contains files of an earlier run (training.json): '


def test_a_new_run_is_refused_where_an_earlier_one_lies(used):
    """Also one from its weights."""
    before = files(used / 'run')
    assert before.keys() >= {'epoch_1.pth', 'epoch_3.pth', 'epochs.py', 'last_checkpoint', 'training.json'}
    message = f'{USED}--resume continues from epoch_3.pth; or choose another --work-dir'
    assert_one_line(train_few(used, options=['load_from=run/epoch_2.pth']), message)
    assert files(used / 'run') == before


def test_a_training_in_python(tmp_path, monkeypatch):
    """It is refused too, and resumes from the newest checkpoint; without one it begins as any other run."""
    begun = []
    monkeypatch.setattr('vt.engine.run.runner.load_own_parts', begun.append)
    train_small(tmp_path, 1, resume=True)
    before = files(tmp_path)
    with pytest.raises(UserError, match=r'contains files of an earlier run \(epoch_1\.pth\): --resume continues from'):
        train_small(tmp_path, 1)
    assert files(tmp_path) == before
    (tmp_path / 'last_checkpoint').unlink()
    train_small(tmp_path, 2, resume=True)
    assert len(begun) == 1
    assert 'resumed epoch: 1, iter: 2' in log_of(tmp_path)
    assert log_of(tmp_path).count('WARNING - There is nothing to resume') == 1
    assert torch.load(tmp_path / 'epoch_2.pth', weights_only=True)['meta']['iter'] == 4


EARLIER = {'epoch_1.pth': 5, 'epoch_2.pth': 10}
REFUSED = 'run contains files of an earlier run'


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
        (
            EARLIER | {'epoch_3.pth': 0},
            'run/epoch_3.pth',
            'does not begin like a checkpoint of torch.save; --resume continues from',
        ),
        (EARLIER, 'other/epoch_7.pth', REFUSED),
        (EARLIER, 'https://host/epoch_7.pth', REFUSED),
        ({'interrupted_iter_7.pth': 7}, None, REFUSED),
        ({'best_val_loss_epoch_2.pth': 10}, 'auto', f'{REFUSED} (best_val_loss_epoch_2.pth): it has no checkpoint to'),
        ({}, 'run', '--resume run: the folder has no checkpoint'),
        ({'epoch_1.pth': 0}, 'auto', 'run has no complete checkpoint: choose another --work-dir'),
        ({}, 'other/epoch_8.pth', 'there is no checkpoint to resume from other/epoch_8.pth'),
    ],
)
def test_where_a_run_starts(lying, asked, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, step in ({f'run/{name}': step for name, step in lying.items()} | {'other/epoch_7.pth': 35}).items():
        Path(name).parent.mkdir(exist_ok=True)
        torch.save(dict(meta=dict(epoch=step // 5, iter=step)), name) if step else Path(name).write_bytes(b'damaged')
    if expected is None or (expected.endswith('.pth') and ' ' not in expected):
        with use_work_directory('run', asked) as start:
            assert start.checkpoint == expected
            assert start.held is None or start.held.name == expected
            assert start.held or asked not in ('auto', 'run') or not expected
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
        with suppress(KeyError), use_work_directory(str(tmp_path), None) as found:
            torch.save(dict(meta=dict(epoch=1, iter=5)), tmp_path / 'epoch_1.pth')
            if end is not None:
                raise end
        return found.checkpoint and Path(found.checkpoint).name

    return start


def test_a_restart_continues_what_its_own_job_has_written(job, monkeypatch):
    """Not an earlier run, also after it was refused for that one; also if it was killed while it looked for it."""
    assert job('first', 0, end=KeyError()) is None
    with monkeypatch.context() as killed:
        killed.setattr('vt.engine.run.work_directory.find_newest_checkpoint', lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            job('first', 1)
    assert job('first', 2, end=KeyError()) == 'epoch_1.pth'
    for name in ('second', 'first'):
        with pytest.raises(UserError, match='contains files of an earlier run'):
            job(name, 1)


def test_a_restart_does_not_continue_a_finished_run_of_the_same_name(job):
    assert job('none', 0) is None
    with pytest.raises(UserError, match='contains files of an earlier run'):
        job('none', 1)


def test_two_trainings_of_one_folder(tmp_path):
    """One of two that start together is refused in a line; when the other is killed, the folder is free."""
    groups = [start_processes(2, *ARGUMENTS, cwd=tmp_path, options=[*FEW, *LONG]) for _ in range(2)]
    while all(group[0].process.is_alive() for group in groups):
        groups[0][0].process.join(0.05)
    refused, going = sorted(groups, key=lambda group: group[0].process.is_alive())
    first, other = [run.wait() for run in refused]
    name = f'run is in use by another training (process {going[0].process.pid} on {socket.gethostname()} since '
    if 'just started' in first.stderr:  # the other has the folder, and has not written who it is
        name = 'run is in use by another training (just started): wait until it ends, stop it, or choose another'
    assert_one_line(first, name)
    assert_one_line(other, 'stopped because another process failed')
    going[0].wait_for('Epoch(train)')
    assert_one_line(train_few(tmp_path, '--resume'), name)
    for run in going:
        run.send_signal(signal.SIGKILL)
        run.wait()
    with use_work_directory(str(tmp_path / 'run'), 'auto'):
        pass
