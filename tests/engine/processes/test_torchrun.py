"""Runs that torchrun starts, by ``tools/dist_train.sh``: a process that is killed, one that fails, a port in use."""

import os
import re
import socket
import subprocess
import sys

import pytest
import torch
from process_groups import free_port, run_processes
from tool_runner import ROOT, SMALL_CLASSIFIER

RUN = f"""
_base_ = '{ROOT}/configs/vt_resnet/vt-resnet18_digits.py'
custom_imports = dict(imports=['vt', 'failing_processes'])
custom_hooks = [dict(type='EMAHook', momentum=0.1, update_buffers=True)]
"""
KILLED = "custom_hooks += [dict(type='Fail', rank=1, iteration=3, how='SIGKILL')]\n"
OPTIONS = [*SMALL_CLASSIFIER, 'train_cfg.max_epochs=2', 'train_dataloader.batch_size=16', 'log_level=WARNING']


def write_run(folder, more=''):
    path = folder / 'run.py'
    path.write_text(RUN + more)
    return path


def start(config, processes, *arguments, cwd, **env):
    """``tools/dist_train.sh`` in a session of its own."""
    paths = f'{ROOT}:{ROOT / "tests"}'
    env = dict(os.environ, PYTHON=sys.executable, PYTHONPATH=paths, CUDA_VISIBLE_DEVICES='', **env)
    command = ['bash', ROOT / 'tools/dist_train.sh', config, str(processes), *arguments, '--cfg-options', *OPTIONS]
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return subprocess.Popen(command, cwd=cwd, env=env | dict(OMP_NUM_THREADS='1'), start_new_session=True, **pipes)


def finish(process):
    """Exit code and what it printed to standard error; no process of its session is left."""
    try:
        _, stderr = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    left = subprocess.run(['ps', '-s', str(process.pid), '-o', 'pid=,args='], capture_output=True, text=True)
    assert not left.stdout.strip()
    return process.returncode, stderr


@pytest.mark.slow
def test_a_killed_process_is_started_again_and_the_run_ends_as_if_nothing_had_happened(tmp_path):
    """Two torchruns, as of two machines, meet at an endpoint; the second one's process kills itself in epoch 2."""
    endpoint = dict(NNODES='2', RDZV_ENDPOINT=f'127.0.0.1:{free_port()}', MAX_RESTARTS='2')
    config = write_run(tmp_path, KILLED)
    machines = [
        start(config, 1, '--skip-data-check', '--work-dir', 'killed', cwd=tmp_path, **endpoint) for _ in range(2)
    ]
    results = [finish(machine) for machine in machines]
    assert [code for code, _ in results] == [0, 0], results
    run_processes(
        2, 'train.py', write_run(tmp_path), '--skip-data-check', '--work-dir', 'whole', cwd=tmp_path, options=OPTIONS
    )
    killed, whole = (torch.load(tmp_path / name / 'epoch_2.pth', weights_only=False) for name in ('killed', 'whole'))
    assert len(list((tmp_path / 'killed').glob('20*'))) == 2  # it was started twice
    for part in ('state_dict', 'ema_state_dict', 'optimizer'):
        torch.testing.assert_close(killed[part], whole[part], rtol=0, atol=0)


def run_script(folder, text, *options, how=''):
    """A script in two processes of torchrun: exit code and what it printed to standard error."""
    (folder / 'script.py').write_text(text)
    command = [sys.executable, '-m', 'vt.engine.processes.torchrun', '--nproc-per-node', '2', *options]
    env = dict(os.environ, PYTHONPATH=ROOT, CUDA_VISIBLE_DEVICES='', OMP_NUM_THREADS='1')
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return finish(subprocess.Popen([*command, 'script.py', how], cwd=folder, env=env, start_new_session=True, **pipes))


SCRIPT = """
import os, signal, sys, time
if os.environ['RANK'] == '0':
    time.sleep(60)
if sys.argv[1] == 'SIGKILL':
    os.kill(os.getpid(), signal.SIGKILL)
from torch.distributed.elastic.multiprocessing.errors import get_error_handler
get_error_handler().record_exception(ValueError(sys.argv[1]))  # as vt.engine.reporting does
sys.exit(1)
"""


@pytest.mark.parametrize(
    ('how', 'line'),
    [
        (
            'two\nlines',
            'rank 1 failed first (exit code 1): ValueError: two lines; its log is *_rank1.log in the work directory',
        ),
        ('SIGKILL', 'rank 1 failed first (was ended by SIGKILL): Signal 9 (SIGKILL) received by PID'),
    ],
)
def test_torchrun_says_in_one_line_who_failed_first(how, line, tmp_path):
    code, stderr = run_script(tmp_path, SCRIPT, '--standalone', how=how)
    assert code == 1
    assert stderr.splitlines()[-1].startswith(f'torchrun: {line}')
    assert 'Traceback' not in stderr


MEET = """
import os, signal
from mmengine.config import Config
from vt.engine.processes.distributed import any_process, join_processes
join_processes(Config(dict(launcher='pytorch')))
assert any_process(True)
if (os.environ['RANK'], os.environ['TORCHELASTIC_RESTART_COUNT']) == ('1', '0'):
    os.kill(os.getpid(), signal.SIGKILL)
assert any_process(True)
"""


@pytest.mark.slow
def test_processes_that_are_started_again_meet_at_the_same_port(tmp_path):
    """torchrun's store is the same one then, and still holds the addresses of those that ended."""
    code, stderr = run_script(tmp_path, MEET, '--master-port', str(free_port()), '--max-restarts', '1')
    assert code == 0, stderr


def test_a_port_in_use_is_one_line(tmp_path):
    with socket.socket() as taken:
        taken.bind(('0.0.0.0', 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, stderr = finish(start(write_run(tmp_path), 2, cwd=tmp_path, PORT=str(port)))
    assert code == 1
    assert re.fullmatch(
        rf'torchrun: could not connect to the other machines \(.*{port}.*\): check PORT, .*',
        stderr.splitlines()[-1],
    )
    assert 'Traceback' not in stderr
