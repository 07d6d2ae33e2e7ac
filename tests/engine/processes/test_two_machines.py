"""Runs over two machines are those of one; they outlive a cable that is out, and a machine that is lost."""

import os
import sys
import time

import pytest
from namespaces import ADDRESSES, CABLE, two_machines, why_not
from process_groups import run_processes
from run_comparison import assert_same_end
from tool_runner import ROOT

RUN = f"""
_base_ = '{ROOT}/configs/vt_resnet/vt-resnet18-half_digits.py'
custom_imports = dict(imports=['vt', 'loss_recorder'])  # double precision
custom_hooks = [dict(type='EMAHook', momentum=0.1, update_buffers=True)]
model = dict(
    backbone=dict(base_channels=8, stem_channels=8, num_tokens=4, token_channels=32, norm_cfg=dict(type='SyncBN')),
    head=dict(in_channels=32),
)
train_dataloader = dict(batch_size=4, dataset=dict(indices=64))
val_dataloader = dict(batch_size=8, dataset=dict(indices=32))
test_dataloader = val_dataloader
default_hooks = dict(logger=dict(interval=1))
train_cfg = dict(max_epochs=3)
"""
SHORT = ['train_cfg.max_epochs=1', 'train_dataloader.dataset.indices=16', 'val_dataloader.dataset.indices=16']
# Of the namespaces of two machines, and arguments of a training: one process's, on its machine.
ENTER = f"""
import ctypes, os, runpy, sys
name = [sys.argv.pop(1) for _ in range(2)][int(os.environ['RANK'])]
with open(f'/var/run/netns/{{name}}') as namespace:
    assert ctypes.CDLL(None).setns(namespace.fileno(), 0) == 0
runpy.run_path('{ROOT}/tools/train.py', run_name='__main__')
"""
FIXED = dict(NNODES='2', MASTER_ADDR='node0', PORT='29500')
ELASTIC = dict(NNODES='1:2', RDZV_ENDPOINT='node0:29400', MAX_RESTARTS='2')
HANGS = 1800  # seconds


@pytest.fixture
def machines():
    if reason := why_not():
        pytest.skip(reason)
    with two_machines() as machines:
        yield machines


@pytest.fixture(scope='module')
def one_machine(tmp_path_factory):
    """The folder of two processes' run on this machine, undisturbed."""
    return train_here(tmp_path_factory.mktemp('one'))


def train_here(folder, options=()):
    results = run_processes(2, 'train.py', *arguments(folder), cwd=folder, options=options, timeout=HANGS)
    assert [result.returncode for result in results] == [0, 0], results
    return folder / 'out'


def arguments(folder):
    (folder / 'run.py').write_text(RUN)
    return ['run.py', '--skip-data-check', '--work-dir', 'out']


def start(machines, folder, *more, **env):
    """``tools/dist_train.sh`` on both machines, with one process each."""
    config, *others = arguments(folder)
    command = ['bash', ROOT / 'tools/dist_train.sh', config, '1', *others, *more]
    env = dict(os.environ, PYTHON=sys.executable, PYTHONPATH=f'{ROOT}:{ROOT / "tests"}', PYTHONUNBUFFERED='1', **env)
    env |= dict(CUDA_VISIBLE_DEVICES='', OMP_NUM_THREADS='1')
    return [
        machine.start(*command, output=folder / f'{rank}.txt', cwd=folder, env=env | dict(NODE_RANK=str(rank)))
        for rank, machine in enumerate(machines)
    ]


def printed(folder):
    return ''.join((folder / f'{rank}.txt').read_text() for rank in range(2))


def wait_for(text, runs, folder):
    """Until one of the runs has printed a text."""
    end = time.monotonic() + HANGS
    while text not in printed(folder):
        assert time.monotonic() < end, printed(folder)
        assert any(run.poll() is None for run in runs), printed(folder)
        time.sleep(0.01)


def begin(machines, folder, *more, **env):
    """Both machines' runs, in their second epoch."""
    runs = start(machines, folder, *more, **env)
    wait_for('Epoch(train) [2][1/8]', runs, folder)
    return runs


def assert_ends_well(runs, folder):
    assert [run.wait(HANGS) for run in runs] == [0, 0], printed(folder)


def test_two_machines_have_the_weights_of_one(machines, tmp_path):
    """A process of each, which have nothing in common but files and cable; the other tests start all by torchrun."""
    (tmp_path / 'enter.py').write_text(ENTER)
    env = dict(MASTER_ADDR=ADDRESSES[0], GLOO_SOCKET_IFNAME=CABLE)
    command = [tmp_path / 'enter.py', *[machine.namespace for machine in machines], *arguments(tmp_path)]
    results = run_processes(2, *command, cwd=tmp_path, options=SHORT, env=env)
    assert [result.returncode for result in results] == [0, 0], results
    (tmp_path / 'one').mkdir()
    assert_same_end(tmp_path / 'out', train_here(tmp_path / 'one', SHORT))


@pytest.mark.slow
@pytest.mark.parametrize('timeout', [None, 20])
def test_a_cable_that_is_out_is_a_pause_or_has_both_started_again(timeout, machines, one_machine, tmp_path):
    """It is out for a moment, or for longer than processes wait."""
    more = ['--cfg-options', f'env_cfg.dist_cfg.timeout={timeout}'] if timeout else []
    runs = begin(machines, tmp_path, *more, **ELASTIC)
    machines[1].set_cable('down')
    if timeout:
        wait_for('Traceback', runs, tmp_path)
    else:
        before, after = None, printed(tmp_path)
        while before != after:  # until nothing is printed for a second
            time.sleep(1)
            before, after = after, printed(tmp_path)
        assert 'Epoch(val) [3]' not in after
    machines[1].set_cable('up')
    assert_ends_well(runs, tmp_path)
    assert_same_end(tmp_path / 'out', one_machine)
    assert timeout or len(list((tmp_path / 'out').glob('20*'))) == 1  # nothing was started again


@pytest.mark.slow
def test_a_machine_that_is_killed_ends_the_run_and_resume_goes_on(machines, one_machine, tmp_path):
    runs = begin(machines, tmp_path, **FIXED)
    machines[1].kill()
    assert runs[0].wait(HANGS) == 1
    assert (tmp_path / '0.txt').read_text().splitlines()[-1].startswith('torchrun: rank 0 failed first')
    assert_ends_well(start(machines, tmp_path, '--resume', **FIXED), tmp_path)
    assert_same_end(tmp_path / 'out', one_machine)
