"""Runs that torchrun starts, by ``tools/dist_train.sh``: a process that is killed, one that fails, a port in use."""

import os
import re
import socket
import subprocess
import sys

import pytest
import torch
from process_groups import free_port, run_processes
from run_comparison import assert_same_end
from tool_runner import ROOT, SMALL_CLASSIFIER

RUN = f"""
_base_ = '{ROOT}/configs/vt_resnet/vt-resnet18_digits.py'
custom_imports = dict(imports=['vt', 'failing_processes'])
custom_hooks = [dict(type='EMAHook', momentum=0.1, update_buffers=True)]
"""
KILLED = f"{RUN}custom_hooks += [dict(type='Fail', rank=1, iteration=3, how='SIGKILL')]\n"
WHERE = dict(CUDA_VISIBLE_DEVICES='', OMP_NUM_THREADS='1', PYTHON=sys.executable)
OPTIONS = [*SMALL_CLASSIFIER, 'train_cfg.max_epochs=2', 'train_dataloader.batch_size=16', 'log_level=WARNING']


def start(command, cwd, **env):
    """A command in a session of its own."""
    env = dict(os.environ, PYTHONPATH=f'{ROOT}:{ROOT / "tests"}', **WHERE | env)
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return subprocess.Popen(command, cwd=cwd, env=env, start_new_session=True, **pipes)


def start_training(count, folder, text=RUN, **env):
    (folder / 'run.py').write_text(text)
    command = ['bash', ROOT / 'tools/dist_train.sh', 'run.py', str(count), '--skip-data-check', '--work-dir', 'out']
    return start([*command, '--cfg-options', *OPTIONS], folder, **env)


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
    machines = [start_training(1, tmp_path, KILLED, **endpoint) for _ in range(2)]
    results = [finish(machine) for machine in machines]
    assert [code for code, _ in results] == [0, 0], results
    assert len(list((tmp_path / 'out').glob('20*'))) == 2  # it was started twice
    (tmp_path / 'whole.py').write_text(RUN)
    arguments = ['train.py', 'whole.py', '--skip-data-check', '--work-dir', 'whole']
    run_processes(2, *arguments, cwd=tmp_path, options=OPTIONS)
    killed, whole = (torch.load(tmp_path / name / 'epoch_2.pth', weights_only=False) for name in ('out', 'whole'))
    for part in ('state_dict', 'ema_state_dict', 'optimizer'):
        torch.testing.assert_close(killed[part], whole[part], rtol=0, atol=0)


def run_script(folder, text, *options, how=''):
    """A script in two processes of torchrun: exit code and what it printed to standard error."""
    (folder / 'script.py').write_text(text)
    command = [sys.executable, '-m', 'vt.engine.run.torchrun', '--nproc-per-node', '2', *options]
    return finish(start([*command, 'script.py', how], folder))


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

RANK_1 = 'rank 1 failed first'


@pytest.mark.parametrize(
    ('how', 'line'),
    [
        ('two\nlines', f'{RANK_1} (exit code 1): ValueError: two lines; its log is *_rank1.log in the work directory'),
        ('SIGKILL', f'{RANK_1} (was ended by SIGKILL): Signal 9 (SIGKILL) received by PID'),
    ],
)
def test_torchrun_says_in_one_line_who_failed_first(how, line, tmp_path):
    code, stderr = run_script(tmp_path, SCRIPT, '--standalone', how=how)
    assert code == 1
    assert stderr.splitlines()[-1].startswith(f'torchrun: {line}')
    assert 'Traceback' not in stderr


def test_a_port_in_use_is_one_line(tmp_path):
    with socket.create_server(('', 0)) as taken:
        port = taken.getsockname()[1]
        code, stderr = finish(start_training(2, tmp_path, PORT=str(port)))
    assert code == 1
    line = rf'torchrun: could not connect to the other machines \(.*{port}.*\): check PORT, .*'
    assert re.fullmatch(line, stderr.splitlines()[-1])
    assert 'Traceback' not in stderr


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason='needs a GPU')
def test_a_group_of_one_process_of_nccl_trains_like_none(tmp_path):
    config = ROOT / 'tests/engine/interruption/epochs.py'
    commands = dict(none=[sys.executable, ROOT / 'tools/train.py', config])
    commands['one'] = ['bash', ROOT / 'tools/dist_train.sh', config, '1']
    env = os.environ | dict(PYTHON=sys.executable)
    for name, command in commands.items():
        assert subprocess.run([*command, '--work-dir', name], cwd=tmp_path, env=env).returncode == 0
    assert_same_end(tmp_path / 'none', tmp_path / 'one')
