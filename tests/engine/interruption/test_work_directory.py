"""A work directory belongs to one run at a time, and the files of an earlier one are set aside."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from engine.interruption.test_preemption import wait_for
from forked_tools import ForkedTool, run_forked
from process_groups import start_processes
from run_comparison import assert_same_end, final_checkpoint
from tool_runner import ROOT, assert_one_line

from vt.engine.interruption.work_directory import WorkDirectory

CONFIG = Path(__file__).parent / 'epochs.py'
FEW = ['train_cfg.max_epochs=2', 'train_dataloader.num_workers=0', 'train_dataloader.persistent_workers=False']
OTHER = ['randomness.seed=7']
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


@pytest.fixture(scope='module')
def other(tmp_path_factory):
    """The same of a run with another seed, which never met the first one."""
    folder = tmp_path_factory.mktemp('other')
    result = train(folder, options=OTHER)
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


@pytest.mark.parametrize('moment', ['Checkpoints will be saved', 'Epoch(train) [1][3/5]'])
def test_a_run_killed_before_its_first_checkpoint_begins_anew(moment, used, other):
    """It does not go on from the earlier run of the folder, whose files are set aside."""
    before = files(used / 'run')
    assert before.keys() >= {'epoch_1.pth', 'epoch_2.pth', 'epochs.py', 'last_checkpoint', 'training.json'}
    second = start(used, options=OTHER)
    wait_for(second, moment)
    kill(second)
    result = train(used, '--resume', options=OTHER)
    assert result.returncode == 0, result.stderr
    (earlier,) = (used / 'run').glob('earlier_run_*')
    name = earlier.relative_to(used)
    hint = f'There is nothing to resume in run (for an earlier run, use --resume {name}): training starts from the'
    assert hint in result.stdout
    assert_same_end(used / 'run', other / 'run')
    assert files(earlier) == before


def test_a_new_run_never_mixes_with_the_earlier_one(used, other):
    """Also one that keeps fewer checkpoints, and is killed after its first."""
    before = files(used / 'run')
    second = start(used, options=OTHER)
    wait_for(second, 'Epoch(train) [2][2/5]')
    kill(second)
    (earlier,) = (used / 'run').glob('earlier_run_*')
    assert files(earlier) == before
    assert [path.name for path in (used / 'run').glob('*.pth')] == ['epoch_1.pth']
    assert not (used / 'run/training.json').exists()
    few = ['test_dataloader.dataset.indices=8']
    result = run_forked('test.py', earlier / 'epochs.py', earlier / 'epoch_1.pth', cwd=used, options=few)
    assert result.returncode == 0, result.stderr
    result = train(used, '--resume', options=OTHER)
    assert result.returncode == 0, result.stderr
    assert 'Epoch(train) [1]' not in result.stdout
    assert_same_end(used / 'run', other / 'run')


def test_weights_of_the_earlier_run_may_be_where_it_began(used):
    """They move with the others; who goes on needs them no more."""
    begin = 'load_from=run/epoch_2.pth'
    second = start(used, options=[begin])
    wait_for(second, 'Epoch(train) [2][2/5]')
    kill(second)
    assert not (used / 'run/epoch_2.pth').exists()
    result = train(used, '--resume', options=[begin])
    assert result.returncode == 0, result.stderr
    assert 'Epoch(train) [1]' not in result.stdout
    assert_one_line(
        train(used, options=['load_from=run/none.pth']), 'there is no checkpoint of load_from, run/none.pth'
    )


def test_an_error_before_training_leaves_the_earlier_run_the_newest(used):
    before = files(used / 'run')
    assert train(used, options=['train_dataloader.batch_size=1000']).returncode == 1
    assert files(used / 'run') == before
    result = train(used, '--resume', options=['train_cfg.max_epochs=3'])
    assert result.returncode == 0, result.stderr
    assert 'Epoch(train) [2]' not in result.stdout
    assert 'Epoch(train) [3]' in result.stdout
    assert not list((used / 'run').glob('earlier_run_*'))


def test_a_restart_does_not_take_the_run_before(used):
    """torchrun starts again what failed before it began."""
    restarts = dict(os.environ, TORCHELASTIC_MAX_RESTARTS='1', TORCHELASTIC_RESTART_COUNT='0')
    assert train(used, options=['train_dataloader.batch_size=1000'], env=restarts).returncode == 1
    result = train(used, options=OTHER, env=restarts | dict(TORCHELASTIC_RESTART_COUNT='1'))
    assert result.returncode == 0, result.stderr
    assert 'Epoch(train) [1]' in result.stdout


def test_an_earlier_run_goes_on_where_a_person_names_its_file(used, finished):
    """The files of the other are set aside; none of them is removed."""
    assert train(used, options=OTHER).returncode == 0
    (earlier,) = (used / 'run').glob('earlier_run_*')
    before = files(used / 'run')
    checkpoint = earlier.relative_to(used) / 'epoch_1.pth'
    result = train(used, '--resume', checkpoint)
    assert result.returncode == 0, result.stderr
    (second,) = set((used / 'run').glob('earlier_run_*')) - {earlier}
    assert files(second) == before
    assert final_checkpoint(used / 'run')['meta']['seed'] == final_checkpoint(finished / 'run')['meta']['seed']
    assert (earlier / 'epoch_1.pth').exists()
    assert [path.name for path in (used / 'run').glob('epoch_*.pth')] == ['epoch_2.pth']


def test_a_run_that_goes_on_from_an_earlier_checkpoint_sets_the_later_ones_aside(used, finished):
    """What is not of a run stays."""
    (used / 'run/notes.pth').write_text('mine')
    (used / 'run/notes.py').write_text('mine = True')
    before = files(used / 'run')
    second = start(used, '--resume', 'run/epoch_1.pth')
    wait_for(second, 'Epoch(train) [2][2/5]')
    kill(second)
    result = train(used, '--resume')
    assert result.returncode == 0, result.stderr
    assert 'Epoch(train) [1]' not in result.stdout
    (earlier,) = (used / 'run').glob('earlier_run_*')
    assert f'later iterations, in run were moved to {earlier.relative_to(used)}' in second.stdout
    here = {'epoch_1.pth', 'notes.pth', 'notes.py'}
    assert files(earlier) == {path: content for path, content in before.items() if path not in here}
    assert {path: files(used / 'run')[path] for path in here} == {path: before[path] for path in here}
    (used / 'run/notes.pth').unlink()
    assert_same_end(used / 'run', finished / 'run')
    assert files(used / 'run')['epochs.py'] == before['epochs.py']


def test_files_of_a_run_are_known_by_their_names(tmp_path):
    """From one of them, only later ones are set aside."""
    folder, later = tmp_path / 'run', {'iter_6.pth', 'best_val_loss_epoch_2.pth', 'interrupted_iter_7.pth'}
    own, others = {'epoch_1.pth', 'iter_5.pth'}, {'notes.pth', 'epoch_x.pth', 'my_epoch_9.pth', 'epoch_09.pth'}
    for begin, moved in ((None, own | later), ('epoch_1.pth', later)):
        folder.mkdir(parents=True)
        for name in own | later | others:
            torch.save(dict(meta=dict(epoch=1, iter=5)), folder / name)
        with WorkDirectory(str(folder)) as work_directory:
            work_directory.begin_from(begin and str(folder / begin))
        with WorkDirectory(str(folder)):  # after a kill
            assert {path.name for path in folder.glob('earlier_run_*/*')} == moved
        assert {path.name for path in folder.glob('*.pth')} == (own | later | others) - moved
        shutil.rmtree(folder)


def test_what_cannot_be_resumed_is_set_aside_too(used):
    for name in ('epoch_1.pth', 'epoch_2.pth', 'last_checkpoint'):
        (used / 'run' / name).unlink()
    shutil.copy(used / 'run/training.json', used / 'run/best_accuracy_top1_epoch_2.pth')
    before = files(used / 'run')
    result = train(used, '--resume', options=['train_cfg.max_epochs=1'])
    assert 'There is nothing to resume in run' in result.stdout
    (earlier,) = (used / 'run').glob('earlier_run_*')
    assert files(earlier) == before


def test_links_in_a_work_directory_are_not_followed(used):
    """Neither by what is written nor by what is moved."""
    (used / 'mine').write_text('mine')
    for name in ('last_checkpoint', 'training.json', 'epochs.py', 'epoch_1.pth', 'epoch_3.pth'):
        (used / 'run' / name).unlink(missing_ok=True)
        (used / 'run' / name).symlink_to(used / 'mine')
    result = train(used)
    assert result.returncode == 0, result.stderr
    assert (used / 'mine').read_text() == 'mine'
    (earlier,) = (used / 'run').glob('earlier_run_*')
    assert all((earlier / name).is_symlink() for name in ('epoch_1.pth', 'epoch_3.pth', 'last_checkpoint'))
    assert not any(path.is_symlink() for path in (used / 'run').iterdir())
    (used / 'run/run.lock').unlink()
    (used / 'run/run.lock').symlink_to(used / 'mine')
    assert_one_line(train(used), 'Too many levels of symbolic links: run/run.lock')
    assert (used / 'mine').read_text() == 'mine'


def test_a_run_of_another_program_goes_on(used):
    for path in (used / 'run').glob('*.pth'):
        checkpoint = torch.load(path, weights_only=True)
        del checkpoint['meta']['settings']
        torch.save(checkpoint, path)
    result = train(used, '--resume', options=['train_cfg.max_epochs=3'])
    assert result.returncode == 0, result.stderr
    result = train(used, '--resume', options=['train_cfg.max_epochs=4'])
    assert 'Epoch(train) [3]' not in result.stdout
    assert 'Epoch(train) [4]' in result.stdout
    assert not list((used / 'run').glob('earlier_run_*'))


def test_a_training_in_python_keeps_the_earlier_one(used):
    """Also without the tool."""
    code = """
import sys
from vt.engine.prepare import read_config
from vt.engine.launch import build_runner
options = {key: int(value) for key, value in (each.split('=') for each in sys.argv[2:])}
build_runner(read_config(sys.argv[1], options | dict(work_dir='run'))).train()
"""
    before, numbers = files(used / 'run'), ['train_cfg.max_epochs=1', 'train_dataloader.num_workers=0', *OTHER]
    flags = [*numbers, 'train_dataloader.persistent_workers=0']
    command = [sys.executable, '-c', code, str(CONFIG), *flags]
    subprocess.run(command, cwd=used, check=True, env=dict(os.environ, PYTHONPATH=str(ROOT)))
    (earlier,) = (used / 'run').glob('earlier_run_*')
    assert files(earlier) == before
    assert [path.name for path in (used / 'run').glob('epoch*.pth')] == ['epoch_1.pth']


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
    assert train(tmp_path).returncode == 0


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
