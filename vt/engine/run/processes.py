"""Distributed runs: join the processes of torchrun, SLURM or MPI, and agree on states of the run."""

import atexit
import functools
import gc
import os
import re
import socket
from datetime import timedelta
from typing import Any

import torch
from mmengine.config import Config
from mmengine.device import get_device
from mmengine.dist import all_reduce, get_world_size, is_distributed
from mmengine.hooks import Hook
from mmengine.runner import Runner
from torch import distributed

from vt.errors import UserError
from vt.registry import HOOKS

TIMEOUT = 1800  # seconds to wait for other processes; PyTorch's default
# Variables of each launcher for rank, world size and local rank, and the command that starts it.
LAUNCHERS = dict(
    pytorch=('RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'torchrun'),
    mpi=('OMPI_COMM_WORLD_RANK', 'OMPI_COMM_WORLD_SIZE', 'OMPI_COMM_WORLD_LOCAL_RANK', 'mpirun'),
    slurm=('SLURM_PROCID', 'SLURM_NTASKS', 'SLURM_LOCALID', 'srun'),
)


def join_processes(cfg: Config) -> None:
    """Join the process group of the config's ``launcher``, with NCCL on GPUs or gloo on CPUs, or raise a UserError.

    On CPUs the model wrapper for CPUs is set in the config, because mmengine's needs GPUs. ``env_cfg.dist_cfg.timeout``
    is the time in seconds to wait for other processes. A second call has no effect.
    """
    launcher = cfg.get('launcher', 'none')
    cfg.launcher = 'pytorch' if launcher != 'none' and is_distributed() else set_process_variables(launcher)
    if cfg.launcher == 'none':
        return
    if not is_distributed():
        atexit.register(_leave_process_group)
        try:
            _join(**cfg.get('env_cfg', {}).get('dist_cfg', {}))
        except RuntimeError as error:
            reason, address = str(error).splitlines()[0], '{MASTER_ADDR}:{MASTER_PORT}'.format(**os.environ)
            advice = 'check that the port is free, that all of them have the same MASTER_ADDR and MASTER_PORT, and '
            advice += 'that the host name of each machine resolves to its network (or set GLOO_SOCKET_IFNAME)'
            raise UserError(f'could not connect to the other processes at {address} ({reason}): {advice}') from error
    if get_device() == 'cpu':
        unused = cfg.get('find_unused_parameters', False)
        wrapper = dict(type='vt.CPUDistributedDataParallel', find_unused_parameters=unused)
        cfg.model_wrapper_cfg = wrapper | dict(cfg.get('model_wrapper_cfg') or {})


def number_in(name: str, default: int = 0) -> int:
    """Return the number in an environment variable; the default if it is not set or empty."""
    return int(os.environ.get(name) or default)


def find_launcher() -> str:
    """Return the launcher of this process by its environment: ``'pytorch'``, ``'mpi'``, ``'slurm'`` or ``'none'``."""
    if 'RANK' in os.environ and 'WORLD_SIZE' in os.environ:
        return 'pytorch'
    if number_in('OMPI_COMM_WORLD_SIZE', 1) > 1:
        return 'mpi'
    # SLURM_NTASKS is also set in a batch script, which is not one of the tasks; only srun sets this variable.
    if number_in('SLURM_STEP_NUM_TASKS', 1) > 1:
        return 'slurm'
    return 'none'


def set_process_variables(launcher: str) -> str:
    """Set the environment variables that PyTorch reads from those of a launcher; a second call has no effect.

    Args:
        launcher: ``'pytorch'``, ``'slurm'`` or ``'mpi'``; ``'auto'`` detects it; ``'none'`` is a run of one process.

    Returns:
        ``'none'``, or ``'pytorch'`` for one of several processes, since the environment is now that of torchrun.
    """
    launcher = find_launcher() if launcher == 'auto' else launcher
    if launcher == 'none':
        return launcher
    *names, command = LAUNCHERS[launcher]
    for name in names[:2]:
        if name not in os.environ:
            raise UserError(f'--launcher {launcher}: {name} is not set; start the processes with {command}')
    rank, world_size, local_rank = (str(number_in(name)) for name in names)
    if launcher != 'pytorch' and torch.cuda.device_count() == 1:
        local_rank = '0'  # the scheduler gives each process only its own GPU
    os.environ.update(RANK=rank, WORLD_SIZE=world_size, LOCAL_RANK=local_rank)
    os.environ.setdefault('MKL_NUM_THREADS', os.environ.get('OMP_NUM_THREADS', '1'))  # avoids mmengine's warning
    if 'MASTER_ADDR' not in os.environ:
        os.environ['MASTER_ADDR'] = _find_address(launcher)
    job = sum(number_in(name) for name in ('SLURM_JOB_ID', 'SLURM_STEP_ID'))  # jobs may share a machine
    port = 15000 + job % 15000 if launcher == 'slurm' else 29500
    os.environ['MASTER_PORT'] = str(number_in('MASTER_PORT', number_in('PORT', port)))
    try:
        socket.getaddrinfo(os.environ['MASTER_ADDR'], None)
    except OSError as error:  # PyTorch would retry until its timeout
        advice = 'set MASTER_ADDR to the name or address of the first machine'
        raise UserError(f'cannot resolve the host name {os.environ["MASTER_ADDR"]}: {advice}') from error
    return 'pytorch'


def _find_address(launcher: str) -> str:
    if launcher == 'slurm':
        return first_node(os.environ.get('SLURM_STEP_NODELIST') or os.environ.get('SLURM_NODELIST') or '127.0.0.1')
    if launcher == 'mpi' and os.environ.get('OMPI_COMM_WORLD_LOCAL_SIZE') == os.environ['OMPI_COMM_WORLD_SIZE']:
        return '127.0.0.1'
    raise UserError(f'--launcher {launcher}: MASTER_ADDR is not set; set it to the machine of the first process')


def first_node(nodes: str) -> str:
    """Return the first machine of a node list of SLURM: ``'node07'`` of ``'node[07-12,15],gpu1'``."""
    return re.sub(r'\[(\w+)[^\]]*\]', r'\1', nodes).split(',')[0]


def _join(backend: str = 'nccl', timeout: float = TIMEOUT, **options: Any) -> None:
    if get_device() == 'cpu':
        backend = 'gloo'
    else:
        torch.cuda.set_device(number_in('LOCAL_RANK'))
    wait = timedelta(seconds=timeout)
    distributed.init_process_group(backend, timeout=wait, **options, **_meet_again(wait))


def _meet_again(timeout: timedelta) -> dict:
    """Return a new store for processes that torchrun restarted; the old one has addresses of ended processes."""
    attempt = os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')
    if attempt == '0' or os.environ.get('TORCHELASTIC_USE_AGENT_STORE') != 'True':
        return {}
    store, rank, world_size = next(distributed.rendezvous('env://', timeout=timeout))
    store = distributed.PrefixStore(f'attempt_{attempt}', store)
    return dict(store=store, rank=rank, world_size=world_size)


def _leave_process_group() -> None:
    """End the process group at exit; otherwise a gloo thread that refers to a tensor could abort the interpreter.

    The group joins its threads only if nothing refers to it, so the runner is collected first.
    """
    gc.collect()
    if is_distributed():
        distributed.destroy_process_group()


def largest(number: int, runner: Runner) -> int:
    """Return the largest of the numbers of all processes. Call it in all; it does not wait for a GPU."""
    if runner.world_size == 1:
        return number
    timeout = runner.cfg.get('env_cfg', {}).get('dist_cfg', {}).get('timeout', TIMEOUT)
    found = torch.tensor(number)
    distributed.all_reduce(found, distributed.ReduceOp.MAX, group=_gloo_group(timeout))
    return int(found)


@functools.cache
def _gloo_group(timeout: float) -> Any:
    return distributed.new_group(backend='gloo', timeout=timedelta(seconds=timeout))


def any_process(condition: bool) -> bool:
    """Return whether a condition holds in any process. Call it in all processes."""
    flag = torch.tensor(int(condition))
    all_reduce(flag, 'max')
    return bool(flag)


@HOOKS.register_module()
class SyncBuffersHook(Hook):
    """Average the model's floating-point buffers (BN's running statistics) over all processes after each iteration.

    Each process computes them from its own share of the data, but only the main one writes checkpoints. mmengine's hook
    of this name averages only at the end of epochs; then a checkpoint within an epoch would change the rounding.
    ``EMAHook`` runs afterwards, so that it averages equal buffers. All are averaged in one message.
    """

    priority = 'HIGH'  # before EMAHook

    def after_train_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None, outputs: Any = None) -> None:
        buffers = [buffer for buffer in runner.model.buffers() if buffer.is_floating_point()]
        if get_world_size() == 1 or not buffers:
            return
        averages = torch.cat([buffer.flatten() for buffer in buffers]).double()  # exact for equal buffers
        all_reduce(averages, 'mean')
        for buffer, average in zip(buffers, averages.split([buffer.numel() for buffer in buffers])):
            buffer.copy_(average.view_as(buffer))
