"""A signal that asks a run to end: it saves first, and goes on from there."""

import os
import shutil
import signal
import socket
import time
from pathlib import Path

import pytest
import torch
from forked_tools import ForkedTool, run_forked
from run_comparison import assert_same_end, final_checkpoint

HERE = Path(__file__).parent
ARGUMENTS = ['--skip-data-check', '--work-dir', 'run']
LONG_EPOCHS = ['train_dataloader.dataset.indices=200', 'train_cfg.max_epochs=3']  # the signal comes in time


def wait_for(tool, text):
    """Until a tool has printed a text, or has ended."""
    while text not in tool.stdout and tool.process.is_alive():
        time.sleep(0.01)
    assert text in tool.stdout, tool.stderr


@pytest.mark.parametrize(
    ('config', 'name', 'moment', 'options'),
    [
        pytest.param('epochs', 'SIGTERM', 'Epoch(train) [2][ 2/25]', LONG_EPOCHS, marks=pytest.mark.slow),
        ('epochs', 'SIGUSR1', 'Saving checkpoint at 2 epochs', []),
        pytest.param('iterations', 'SIGTERM', 'Iter(train) [ 6/30]', [], marks=pytest.mark.slow),
    ],
)
def test_saves_and_goes_on(config, name, moment, options, tmp_path):
    config = HERE / f'{config}.py'
    whole, halves = tmp_path / 'whole', tmp_path / 'halves'
    whole.mkdir()
    halves.mkdir()
    assert run_forked('train.py', config, *ARGUMENTS, cwd=whole, options=options).returncode == 0
    run = ForkedTool('train.py', config, *ARGUMENTS, cwd=halves, options=options)
    wait_for(run, moment)
    run.send_signal(signal.Signals[name])
    result = run.wait(timeout=60)
    assert result.returncode == 128 + signal.Signals[name], result.stderr
    assert f'Stopped by {name} after iteration' in result.stdout
    interrupted = (halves / 'run/last_checkpoint').read_text()
    assert 'interrupted_iter_' in interrupted
    step = final_checkpoint(halves / 'run')['meta']['iter']
    shutil.copytree(halves, tmp_path / 'larger batches')
    result = run_forked('train.py', config, *ARGUMENTS, '--resume', cwd=halves, options=options)
    assert result.returncode == 0, result.stderr
    assert f'iter: {step}' in result.stdout
    assert_same_end(halves / 'run', whole / 'run')  # the interrupted checkpoint is gone too
    if options == LONG_EPOCHS:
        options = [*options, 'train_dataloader.batch_size=20', 'train_cfg.max_epochs=2']
        options += ['train_cfg.val_interval=1']  # one is due before the first iteration, with weights within the epoch
        other = tmp_path / 'larger batches'
        result = run_forked('train.py', config, *ARGUMENTS, '--resume', cwd=other, options=options)
        assert result.returncode == 0, result.stderr
        assert 'Epochs have 10 iterations now, and had 25 in the checkpoint: epoch 2 starts again' in result.stdout
        assert final_checkpoint(other / 'run')['meta']['iter'] == 20
        assert torch.load(other / 'run/epoch_1.pth', weights_only=True)['meta']['iter'] == 25


def start_processes(number, *arguments, cwd, options=()):
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = str(free.getsockname()[1])
    where = dict(os.environ, MASTER_ADDR='127.0.0.1', MASTER_PORT=port, WORLD_SIZE=str(number), CUDA_VISIBLE_DEVICES='')
    return [
        ForkedTool(
            'train.py', *arguments, '--launcher', 'pytorch', cwd=cwd, options=options,
            env=dict(where, RANK=str(rank), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(number)),
        )
        for rank in range(number)
    ]  # fmt: skip


@pytest.mark.slow
def test_a_signal_to_one_process_stops_all_at_the_same_iteration(tmp_path):
    config = HERE / 'iterations.py'
    options = ['model.backbone.norm_cfg.type=SyncBN', 'train_dataloader.batch_size=2']
    whole, halves = tmp_path / 'whole', tmp_path / 'halves'
    whole.mkdir()
    halves.mkdir()
    runs = start_processes(2, config, *ARGUMENTS, cwd=whole, options=options)
    assert [run.wait().returncode for run in runs] == [0, 0], [run.stderr for run in runs]
    runs = start_processes(2, config, *ARGUMENTS, cwd=halves, options=options)
    wait_for(runs[0], 'Iter(train) [ 6/30]')
    runs[1].send_signal(signal.SIGTERM)
    codes = [run.wait(timeout=60).returncode for run in runs]
    assert codes == [128 + signal.SIGTERM] * 2, [run.stderr for run in runs]
    runs = start_processes(2, config, *ARGUMENTS, '--resume', cwd=halves, options=options)
    assert [run.wait().returncode for run in runs] == [0, 0], [run.stderr for run in runs]
    assert_same_end(halves / 'run', whole / 'run')
