"""Runs over two machines are those of one; they outlive a cable that is out, and a machine that is lost."""

import os
import re
import sys
import time

import pytest
import torch
from namespaces import ADDRESSES, CABLE, HOSTS, two_machines, why_not
from process_groups import run_processes
from run_comparison import assert_same_end, final_checkpoint
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
SECOND_EPOCH = 'Epoch(train) [2][1/8]'
FIXED = dict(NNODES='2', MASTER_ADDR='node0', PORT='29500')
BY_ADDRESS = dict(FIXED, MASTER_ADDR=ADDRESSES[0])
ELASTIC = dict(NNODES='1:2', RDZV_ENDPOINT='node0:29400', MAX_RESTARTS='2')
LOOPBACK_NAMES = '127.0.0.1 localhost\n127.0.1.1 node0 node1\n'  # as Debian names a machine
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
    return train_here(tmp_path_factory.mktemp('one'), 2)


def train_here(folder, count, *options):
    results = run_processes(count, 'train.py', *arguments(folder), cwd=folder, options=options, timeout=HANGS)
    assert [result.returncode for result in results] == [0] * count, results
    return folder / 'out'


def arguments(folder):
    (folder / 'run.py').write_text(RUN)
    return ['run.py', '--skip-data-check', '--work-dir', 'out']


def start(machines, folder, *more, hosts=HOSTS, **env):
    """``tools/dist_train.sh`` on both machines, with one process each."""
    config, *others = arguments(folder)
    command = ['bash', ROOT / 'tools/dist_train.sh', config, '1', *others, *more]
    env = dict(os.environ, PYTHON=sys.executable, PYTHONPATH=f'{ROOT}:{ROOT / "tests"}', PYTHONUNBUFFERED='1', **env)
    env |= dict(CUDA_VISIBLE_DEVICES='', OMP_NUM_THREADS='1')
    return [
        machine.start(
            *command, output=folder / f'{rank}.txt', hosts=hosts, cwd=folder, env=env | dict(NODE_RANK=str(rank))
        )
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


def wait_until_nothing_moves(folder):
    """Until nothing is printed for a second."""
    before, after = None, printed(folder)
    while before != after:
        time.sleep(1)
        before, after = after, printed(folder)


def assert_ends_well(runs, folder):
    assert [run.wait(HANGS) for run in runs] == [0, 0], printed(folder)


def test_two_machines_have_the_weights_of_one_machine_and_of_one_process(machines, one_machine, tmp_path):
    """The machines are named as Debian names them, and gloo is told its network; in the other tests it finds that."""
    assert_ends_well(start(machines, tmp_path, hosts=LOOPBACK_NAMES, GLOO_SOCKET_IFNAME=CABLE, **BY_ADDRESS), tmp_path)
    assert_same_end(tmp_path / 'out', one_machine)
    (tmp_path / 'alone').mkdir()
    one_process = train_here(tmp_path / 'alone', 1, 'train_dataloader.batch_size=8')
    checkpoints = [final_checkpoint(work_dir) for work_dir in (tmp_path / 'out', one_process)]
    for part in ('state_dict', 'ema_state_dict', 'optimizer'):
        torch.testing.assert_close(*(checkpoint[part] for checkpoint in checkpoints), rtol=1e-8, atol=1e-8)


@pytest.mark.slow
def test_a_host_name_that_leads_to_loopback_is_one_line(machines, tmp_path):
    """The machine that can't connect, either of them, says it at once; the other one waits, as for one that is late."""
    runs = start(machines, tmp_path, hosts=LOOPBACK_NAMES, **BY_ADDRESS)
    wait_for('torchrun: rank ', runs, tmp_path)
    assert (
        len(re.findall('error: rank [01]: run.py: could not connect to the other processes at ', printed(tmp_path)))
        == 1
    )
    assert 'Traceback' not in printed(tmp_path), printed(tmp_path)


@pytest.mark.slow
def test_a_cable_that_is_out_for_a_moment_is_a_pause(machines, one_machine, tmp_path):
    runs = start(machines, tmp_path, **ELASTIC)
    wait_for(SECOND_EPOCH, runs, tmp_path)
    machines[1].set_cable('down')
    wait_until_nothing_moves(tmp_path)
    assert 'Epoch(val) [3]' not in printed(tmp_path)
    machines[1].set_cable('up')
    assert_ends_well(runs, tmp_path)
    assert_same_end(tmp_path / 'out', one_machine)
    assert len(list((tmp_path / 'out').glob('20*'))) == 1  # nothing was started again


@pytest.mark.slow
def test_a_cable_that_is_out_for_longer_than_processes_wait_has_both_started_again(machines, one_machine, tmp_path):
    runs = start(machines, tmp_path, '--cfg-options', 'env_cfg.dist_cfg.timeout=20', **ELASTIC)
    wait_for(SECOND_EPOCH, runs, tmp_path)
    machines[1].set_cable('down')
    wait_for('Traceback', runs, tmp_path)
    machines[1].set_cable('up')
    assert_ends_well(runs, tmp_path)
    assert_same_end(tmp_path / 'out', one_machine)


@pytest.mark.slow
def test_a_machine_that_is_killed_ends_the_run_and_resume_goes_on(machines, one_machine, tmp_path):
    runs = start(machines, tmp_path, **FIXED)
    wait_for(SECOND_EPOCH, runs, tmp_path)
    machines[1].kill()
    assert runs[0].wait(HANGS) == 1
    assert (tmp_path / '0.txt').read_text().splitlines()[-1].startswith('torchrun: rank 0 failed first')
    assert_ends_well(start(machines, tmp_path, '--resume', **FIXED), tmp_path)
    assert_same_end(tmp_path / 'out', one_machine)


@pytest.mark.slow
def test_an_elastic_run_goes_on_without_the_machine_that_is_killed(machines, tmp_path):
    """With half the batch, which it says; torchrun's own settings make it wait for the other one for less long."""
    soon = dict(PET_RDZV_CONF='keep_alive_interval=1,last_call_timeout=1')
    runs = start(machines, tmp_path, **ELASTIC, **soon)
    wait_for(SECOND_EPOCH, runs, tmp_path)
    machines[1].kill()
    assert runs[0].wait(HANGS) == 0, printed(tmp_path)
    assert 'Epochs have 16 iterations now, and had 8 in the checkpoint' in (tmp_path / '0.txt').read_text()
    assert final_checkpoint(tmp_path / 'out')['meta']['epoch'] == 3


@pytest.mark.slow
def test_an_elastic_run_ends_in_one_line_when_the_machine_of_its_endpoint_is_killed(machines, tmp_path):
    runs = start(machines, tmp_path, **ELASTIC)
    wait_for(SECOND_EPOCH, runs, tmp_path)
    machines[0].kill()
    assert runs[1].wait(HANGS) == 1
    output = (tmp_path / '1.txt').read_text()
    assert output.splitlines()[-1].startswith('torchrun: could not connect to the other machines (')
    assert 'Traceback' not in output
