"""One command line however processes are started: by SLURM and MPI as by torchrun."""

import os
import subprocess

import pytest
import torch
from forked_tools import ForkedTool
from process_groups import free_port
from tool_runner import ROOT, SMALL_CLASSIFIER

from vt.engine.run.processes import find_launcher, first_node, set_process_variables
from vt.errors import UserError

CONFIG = ROOT / 'configs/vt_resnet/vt-resnet18_digits.py'


@pytest.fixture
def environment(monkeypatch):
    """Sets variables of a process that nobody has launched."""
    names = ['RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'MASTER_ADDR', 'MASTER_PORT', 'PORT', 'MKL_NUM_THREADS']
    for name in [*names, *(name for name in os.environ if name.startswith(('SLURM_', 'OMPI_')))]:
        monkeypatch.setenv(name, '')  # so that it is restored, whatever a test does to it
        monkeypatch.delenv(name)

    def set_variables(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return set_variables


SLURM = dict(SLURM_PROCID='3', SLURM_NTASKS='4', SLURM_LOCALID='1', SLURM_JOB_ID='70012', SLURM_STEP_ID='2')
MPI = dict(OMPI_COMM_WORLD_RANK='3', OMPI_COMM_WORLD_SIZE='4', OMPI_COMM_WORLD_LOCAL_RANK='1')
TORCHRUN = dict(RANK='3', WORLD_SIZE='4', LOCAL_RANK='1', MASTER_ADDR='127.0.0.1', MASTER_PORT='1234')


@pytest.mark.parametrize(
    ('variables', 'launcher'),
    [
        ({}, 'none'),
        (TORCHRUN, 'pytorch'),
        (MPI, 'mpi'),
        (SLURM | dict(SLURM_STEP_NUM_TASKS='4'), 'slurm'),
        (SLURM, 'none'),  # a batch script
        (SLURM | dict(SLURM_STEP_NUM_TASKS='2') | TORCHRUN, 'pytorch'),  # torchrun started by srun
    ],
)
def test_the_environment_tells_the_launcher(variables, launcher, environment):
    environment(**variables)
    assert find_launcher() == launcher


@pytest.mark.parametrize(
    ('launcher', 'variables', 'found'),
    [
        ('slurm', SLURM | dict(SLURM_STEP_NODELIST='localhost'), ('localhost', 15000 + 70014 % 15000)),
        ('slurm', SLURM | dict(SLURM_NODELIST='localhost,b[1-2]', MASTER_PORT='7'), ('localhost', 7)),
        ('mpi', MPI | dict(OMPI_COMM_WORLD_LOCAL_SIZE='4', PORT='8'), ('127.0.0.1', 8)),
        ('mpi', MPI | dict(MASTER_ADDR='localhost'), ('localhost', 29500)),
        ('mpi', MPI | dict(MASTER_ADDR='::1'), ('::1', 29500)),
        ('pytorch', TORCHRUN, ('127.0.0.1', 1234)),
        ('mpi', MPI | dict(OMPI_COMM_WORLD_LOCAL_SIZE='2'), 'MASTER_ADDR is not set; set it to the machine of the fi'),
        ('pytorch', {}, 'RANK is not set; start the processes with torchrun'),
        ('slurm', {}, 'SLURM_PROCID is not set; start the processes with srun'),
    ],
)
def test_variables_become_those_of_torchrun_or_what_is_missing_is_named(launcher, variables, found, environment):
    environment(**variables)
    if isinstance(found, str):
        with pytest.raises(UserError, match=f'--launcher {launcher}: {found}'):
            set_process_variables(launcher)
        return
    for _ in range(2):  # a second call changes nothing
        assert set_process_variables(launcher) == 'pytorch'
        names = ('RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'MASTER_ADDR', 'MASTER_PORT')
        assert [os.environ[name] for name in names] == ['3', '4', '1', found[0], str(found[1])]


@pytest.mark.parametrize(
    ('nodes', 'first'),
    [
        ('gpu1,gpu2', 'gpu1'),
        ('node[07-12,15],gpu1', 'node07'),
        ('rack[2-3]node[04,06]', 'rack2node04'),
        ('a-b.c[9]', 'a-b.c9'),
    ],
)
def test_the_first_machine_of_a_list(nodes, first):
    assert first_node(nodes) == first


def test_processes_of_slurm_train_together(tmp_path):
    """The default ``--launcher`` finds them; nothing but SLURM's variables tells them of each other."""
    env = dict(os.environ, CUDA_VISIBLE_DEVICES='', OMP_NUM_THREADS='1', MASTER_PORT=str(free_port()))
    env |= dict(SLURM_NTASKS='2', SLURM_STEP_NUM_TASKS='2', SLURM_STEP_NODELIST='localhost')
    options = [*SMALL_CLASSIFIER, 'train_cfg.max_epochs=1']
    arguments = ['train.py', CONFIG, '--auto-scale-lr', '--no-validate', '--work-dir', 'out']
    places = [dict(SLURM_PROCID=rank, SLURM_LOCALID=rank) for rank in '01']
    processes = [ForkedTool(*arguments, cwd=tmp_path, options=options, env=env | place) for place in places]
    results = [process.wait(120) for process in processes]
    assert [result.returncode for result in results] == [0, 0], results[0].stderr + results[1].stderr
    # 64 images in 2 processes with batches of 32; the learning rate is for 32.
    assert 'current batch size is 64. Scaling the original LR by 2.0.' in results[0].stdout
    assert torch.load(tmp_path / 'out/epoch_1.pth', weights_only=False)['meta']['iter'] == 1
    assert [len(list((tmp_path / 'out').rglob(f'*_rank{rank}.log'))) for rank in '01'] == [1, 1]


def test_slurm_train_calls_srun(tmp_path):
    """SLURM itself is not here: in its place stands what prints how it was called."""
    srun = tmp_path / 'srun'
    srun.write_text('#!/bin/sh\necho "threads $OMP_NUM_THREADS" "$@"\n')
    srun.chmod(0o755)
    env = {name: value for name, value in os.environ.items() if name != 'OMP_NUM_THREADS'}
    env |= dict(PATH=f'{tmp_path}:{os.environ["PATH"]}', SLURM_CPUS_PER_TASK='8', SRUN_ARGS='--ntasks=16 --exclusive')
    command = ['bash', ROOT / 'tools/slurm_train.sh', 'a config.py', '--amp']
    result = subprocess.run(command, capture_output=True, text=True, env=env | dict(PYTHON='python3'))
    expected = '--ntasks=16 --exclusive --kill-on-bad-exit=1 python3 -m vt train a config.py --amp'
    assert result.stdout.strip() == f'threads 8 {expected} --launcher slurm', result.stderr
