"""A run that is interrupted at any moment and resumed ends as one that was left alone, bit for bit."""

import os
import random
import shutil
import signal
import time

import pytest
import torch
from engine.interruption.small_runs import CONFIG, KINDS, loader, log_of, train, train_until_killed
from forked_tools import ForkedTool, run_forked
from hypothesis import given, settings
from hypothesis import strategies as st
from mmengine.hooks import Hook
from process_groups import run_processes, start_processes
from run_comparison import assert_same_end, differences, final_checkpoint

KILLS = 20
ARGUMENTS = ['--amp', '--skip-data-check', '--work-dir']
SIGNALS = ('SIGINT', 'SIGTERM', 'SIGUSR1')


class Killed(BaseException):
    """What nothing handles."""


class Interrupt(Hook):
    """Ends a run at an iteration, or soon after it: as a kill does, or by a signal."""

    def __init__(self, iteration, how):
        self.iteration, self.how = iteration, how

    def _interrupt(self, runner, *moments):
        if runner.iter < self.iteration or self.how not in moments:
            return
        if self.how not in SIGNALS:
            raise Killed
        self.after = runner.iter + 1
        os.kill(os.getpid(), signal.Signals[self.how])
        self.how = None

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        self._interrupt(runner, 'killed', *SIGNALS)

    def before_save_checkpoint(self, runner, checkpoint):
        self._interrupt(runner, 'killed while saving')

    def before_val_epoch(self, runner):
        self._interrupt(runner, 'killed before validation')

    def after_val_epoch(self, runner, metrics=None):
        self._interrupt(runner, 'killed after validation')


@pytest.fixture(autouse=True)
def handlers():
    before = {name: signal.getsignal(signal.Signals[name]) for name in SIGNALS}
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background
    yield
    for name, handler in before.items():
        signal.signal(signal.Signals[name], handler)


@pytest.fixture(scope='module')
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp('whole')
    for kind in KINDS:
        train(folder / kind, kind)
    return folder


MOMENTS = ['killed', 'killed while saving', 'killed before validation', 'killed after validation', *SIGNALS]


@settings(max_examples=10)
@given(
    kind=st.sampled_from(sorted(KINDS)),
    interruptions=st.lists(st.tuples(st.integers(0, 14), st.sampled_from(MOMENTS)), min_size=1, max_size=2),
)
def test_interrupted_anywhere_and_resumed(kind, interruptions, whole, tmp_path_factory):
    folder = tmp_path_factory.mktemp('interrupted')
    for iteration, how in interruptions:
        code, hook = None, Interrupt(iteration, how)
        try:
            train(folder, kind, hook)
        except (Killed, SystemExit) as end:
            code = getattr(end, 'code', 'killed')
        if how in SIGNALS and code:
            assert code == 128 + signal.Signals[how]
            assert 'interrupted_iter_' in (folder / 'last_checkpoint').read_text()
            assert f'Stopped by {how} after iteration {hook.after}; saved ' in log_of(folder)
    train(folder, kind)
    assert_same_end(folder, whole / kind)


@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('seed', [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, KILLS))])
def test_killed_again_and_again(seed, kind, whole, tmp_path):
    """While files are renamed and removed."""
    moments, code = random.Random(seed), -signal.SIGKILL
    while code == -signal.SIGKILL:
        code = train_until_killed(tmp_path / 'run', kind, moments.randint(1, 60))
    assert code == 0
    assert_same_end(tmp_path / 'run', whole / kind)
    assert not [*(tmp_path / 'run').glob('.*')]


def test_the_smallest_difference_is_seen(whole):
    first, second = final_checkpoint(whole / 'epochs'), final_checkpoint(whole / 'epochs')
    assert differences(first, second) == []
    second['optimizer']['state'][0]['exp_avg'][0, 0] *= 1 + torch.finfo(torch.float32).eps
    assert differences(first, second) == ['.optimizer.state.0.exp_avg']


def test_within_an_epoch_of_another_length_it_starts_again(tmp_path):
    with pytest.raises(SystemExit):
        train(tmp_path, 'epochs', Interrupt(6, 'SIGTERM'))
    options = dict(train_dataloader=loader('NoisyPoints', batch_size=10), param_scheduler=[], new_schedule=True)
    train(tmp_path, 'epochs', checkpoint=dict(max_keep_ckpts=-1, save_best='mean', rule='greater'), **options)
    words = 'Epochs have 2 iterations now, and had 5 in the checkpoint: epoch 2 starts again'
    assert words in log_of(tmp_path)
    assert final_checkpoint(tmp_path)['meta']['iter'] == 6
    assert torch.load(tmp_path / 'epoch_1.pth', weights_only=True)['meta']['iter'] == 5  # as it was


# Runs in processes of their own, with workers, in mixed precision; two of them in every suite.
FEW = [0, 'SIGINT']
CASES = [*FEW, *(pytest.param(how, marks=pytest.mark.slow) for how in (*range(1, KILLS), *SIGNALS[1:]))]


@pytest.fixture(scope='module')
def uninterrupted(tmp_path_factory):
    """The work directory of a run that was left alone, and how long it took."""
    folder = tmp_path_factory.mktemp('left alone')
    run_forked('train.py', '--help', cwd=folder)  # the first fork waits until all is imported
    begin = time.monotonic()
    result = run_forked('train.py', CONFIG, *ARGUMENTS, folder / 'run', cwd=folder)
    assert result.returncode == 0, result.stderr
    return folder / 'run', time.monotonic() - begin


@pytest.mark.gpu
@pytest.mark.parametrize('how', CASES)
def test_killed_and_resumed(how, uninterrupted, tmp_path):
    expected, seconds = uninterrupted
    if how in SIGNALS:
        stop_run(how, tmp_path)
    else:
        kill_run(random.Random(how).uniform(0, seconds), tmp_path)
    result = run_forked('train.py', CONFIG, *ARGUMENTS, 'run', '--resume', cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert_same_end(tmp_path / 'run', expected)


def kill_run(moment, folder):
    """Kill a run some seconds after its start; sooner where it has ended by then."""
    while True:
        run = ForkedTool('train.py', CONFIG, *ARGUMENTS, 'run', cwd=folder)
        time.sleep(moment)
        run.send_signal(signal.SIGKILL)
        result = run.wait()
        if result.returncode == -signal.SIGKILL:
            return
        assert result.returncode == 0, result.stderr
        shutil.rmtree(folder / 'run')
        moment *= 0.7


def stop_run(name, folder):
    run = ForkedTool('train.py', CONFIG, *ARGUMENTS, 'run', cwd=folder)
    run.wait_for('Saving checkpoint at 2 epochs')
    run.send_signal(signal.Signals[name])
    result = run.wait(timeout=60)
    assert result.returncode == 128 + signal.Signals[name], result.stderr
    assert f'Stopped by {name} after iteration' in result.stdout


@pytest.mark.slow
def test_a_signal_to_one_process_stops_all_at_the_same_iteration(tmp_path):
    arguments = ['train.py', CONFIG, '--skip-data-check', '--resume', '--work-dir']
    options = dict(options=['model.backbone.norm_cfg.type=SyncBN', 'train_dataloader.batch_size=4'], cwd=tmp_path)
    runs = start_processes(2, *arguments, 'halves', **options)
    runs[0].wait_for('Saving checkpoint at 2 epochs')
    runs[1].send_signal(signal.SIGTERM)
    codes = [run.wait(timeout=60).returncode for run in runs]
    assert codes == [128 + signal.SIGTERM] * 2, [run.stderr for run in runs]
    for name in ('halves', 'whole'):
        assert [run.returncode for run in run_processes(2, *arguments, name, **options)] == [0, 0]
    assert_same_end(tmp_path / 'halves', tmp_path / 'whole')
