"""FSDP: the run of several processes is that of one, in double precision, whatever the number that goes on with it."""

import json
import os
import random
import shutil
import signal
import time
from pathlib import Path

import pytest
import torch
from engine.interruption.small_runs import log_of, train_small
from engine.processes.in_each_process import meshes_of
from process_groups import free_port, run_function, run_processes, start_processes
from tool_runner import ROOT

from vt.checkpoints.reading import find_newest_checkpoint, load_checkpoint
from vt.errors import UserError

# Averages, clipped and accumulated gradients, recomputed blocks, a weight of fewer rows than there are processes.
RUN = f"""
_base_ = ['{ROOT}/configs/deit/deit-small_digits.py', '{ROOT}/configs/_base_/strategies/fsdp.py']
custom_imports = dict(imports=['vt', 'loss_recorder'])
custom_hooks = [dict(type='LossRecorder'), dict(type='EMAHook', momentum=0.1)]
stage = dict(channels=24, depth=2, embed=dict(type='vt.PatchEmbed', kernel_size=16), class_tokens=1, num_heads=2)
stage |= dict(position=dict(type='vt.AbsolutePosition'), norm=True)
model = dict(backbone=dict(drop_path_rate=0.0, with_cp=True, stages=[stage]), head=dict(in_channels=24))
train_dataloader = dict(batch_size=8, dataset=dict(indices=48), num_workers=0, persistent_workers=False)
val_dataloader = dict(dataset=dict(indices=16), num_workers=0, persistent_workers=False)
test_dataloader = val_dataloader
train_cfg = dict(max_epochs=2)
optim_wrapper = dict(clip_grad=dict(max_norm=0.5), accumulative_counts=2)
default_hooks = dict(checkpoint=dict(max_keep_ckpts=2))
randomness = dict(seed=1)
"""
ALONE = 'fsdp=None'


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp('sharding')
    (folder / 'run.py').write_text(RUN)
    return folder


def train(folder, name, count, *arguments, config=None, options=(), env=None):
    """Train in ``count`` processes, 16 images an iteration, after a dry run: the losses, averaged over them."""
    options = [f'train_dataloader.batch_size={16 // count}', *options]
    command = ['train.py', config or folder / 'run.py', '--work-dir', folder / name, *arguments]
    results = run_processes(count, *command, cwd=folder, options=options, env=env)
    assert [result.returncode for result in results] == [0] * count, '\n'.join(result.stderr for result in results)
    return losses_of(folder / name, count)


def losses_of(out, count):
    losses = [json.loads((out / f'losses_{rank}.json').read_text()) for rank in range(count)]
    return torch.tensor(losses, dtype=torch.float64).mean(0)


@pytest.fixture(scope='module')
def one(folder):
    return train(folder, 'one', 1, options=[ALONE])


def assert_same(found, expected, tolerance=1e-9):
    """Two checkpoints of one iteration: weights, averages, optimizer, gradients that are being accumulated."""
    close = dict(rtol=tolerance, atol=tolerance)
    for key in ('state_dict', 'ema_state_dict', 'gradients'):
        torch.testing.assert_close(found.get(key), expected.get(key), **close)
    torch.testing.assert_close(found['optimizer']['state'], expected['optimizer']['state'], **close)
    assert found['progress'] == expected['progress']


def test_two_processes_are_one(folder, one):
    torch.testing.assert_close(train(folder, 'two', 2), one, rtol=0, atol=1e-12)
    for name in ('epoch_1.pth', 'epoch_2.pth'):  # three iterations are an epoch
        assert_same(load_checkpoint(folder / 'two' / name), load_checkpoint(folder / 'one' / name))
    assert not [path for path in (folder / 'two').iterdir() if path.name.startswith('.')]


def test_a_mesh_of_one_process_is_a_run_without(folder, one):
    group = dict(MASTER_ADDR='127.0.0.1', MASTER_PORT=str(free_port()), WORLD_SIZE='1', RANK='0', LOCAL_RANK='0')
    first, out = folder / 'mesh/epoch_1.pth', folder / 'mesh_resumed'
    torch.testing.assert_close(train(folder, 'mesh', 1, env=group, options=['fsdp.shard_over=8']), one)
    torch.testing.assert_close(train(folder, out.name, 1, '--resume', first, env=group), one[3:])
    assert all('over 1 of 1 processes' in log_of(each) for each in (first.parent, out))
    assert_same(load_checkpoint(out / 'epoch_2.pth'), load_checkpoint(folder / 'one' / 'epoch_2.pth'))


def test_neighbours_share_a_copy_of_the_weights():
    """Rows are copies, which exchange gradients."""
    for found in run_function(2, meshes_of, (None, 1, 2)):
        assert found == [[0, 1], [[0], [1]], [[0, 1]]]


@pytest.mark.slow
@pytest.mark.parametrize('options', [(), ('fsdp.shard_over=2',)])
def test_two_processes_go_on_with_four(options, folder, one, tmp_path):
    torch.testing.assert_close(train(tmp_path, 'four', 4, config=folder / 'run.py', options=options), one)
    assert_same(load_checkpoint(tmp_path / 'four/epoch_2.pth'), load_checkpoint(folder / 'one' / 'epoch_2.pth'))
    arguments = ['--resume', tmp_path / 'four/epoch_1.pth']
    for count, options in ((2, []), (1, [ALONE])):  # also without sharding
        name = f'resumed_{count}'
        resumed = train(tmp_path, name, count, *arguments, config=folder / 'run.py', options=options)
        torch.testing.assert_close(resumed, one[3:])
        assert_same(load_checkpoint(tmp_path / name / 'epoch_2.pth'), load_checkpoint(folder / 'one' / 'epoch_2.pth'))


def test_what_does_not_work_is_refused(tmp_path):
    with pytest.raises(UserError, match='fsdp requires torchrun, even for one process'):
        train_small(tmp_path, 1, fsdp={})
    with pytest.raises(UserError, match='compile is not tested with fsdp'):
        train_small(tmp_path, 1, fsdp={}, speed=dict(compile=True))


@pytest.mark.slow
def test_killed_while_saving(tmp_path):
    """Killed again and again while it saves, and resumed by itself, a run ends as if left alone.

    ``VT_KILLS`` is the number of kills.
    """
    (tmp_path / 'run.py').write_text(RUN.replace('channels=24', 'channels=192').replace('depth=2', 'depth=4'))
    options = [f'default_hooks.checkpoint.{each}' for each in ('by_epoch=False', 'interval=1')]
    options += ['train_cfg.max_epochs=4']
    alone, draw, found, run = train(tmp_path, 'alone', 2, options=options), random.Random(0), [], tmp_path / 'run'
    command = ['train.py', tmp_path / 'run.py', '--skip-data-check', '--resume', '--work-dir', run]
    while len(found) < int(os.environ.get('VT_KILLS', '3')):
        processes = start_processes(2, *command, cwd=tmp_path, options=options)
        for state in (newest_whole, unfinished):  # one more checkpoint, and the beginning of the next
            before = state(run)
            while processes[0].process.is_alive() and state(run) == before:
                time.sleep(0.001)
        time.sleep(draw.uniform(0, 0.1))
        for process in processes:
            process.send_signal(signal.SIGKILL)
        ended = [process.wait(120).returncode for process in processes]
        newest, damaged = find_newest_checkpoint(run)
        assert not damaged, damaged
        if ended == [-signal.SIGKILL] * 2:
            found.append((len(unfinished(run)), newest and Path(newest.name).name))
        else:  # it had come to its end
            assert 0 in ended, processes[0].stderr
            shutil.rmtree(run)
    assert all(newest for _, newest in found)
    assert any(count for count, _ in found)
    results = run_processes(2, *command, cwd=tmp_path, options=options)
    assert [result.returncode for result in results] == [0, 0], results[0].stderr
    assert_same(*(load_checkpoint(tmp_path / name / 'iter_12.pth') for name in ('run', 'alone')), tolerance=0)
    last = losses_of(run, 2)
    torch.testing.assert_close(last, alone[len(alone) - len(last) :], rtol=0, atol=1e-12)


def unfinished(folder):
    return [*folder.glob('.*.part')]


def newest_whole(folder):
    pointer = folder / 'last_checkpoint'
    return pointer.read_text() if pointer.exists() else ''
