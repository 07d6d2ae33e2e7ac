"""Distributed runs: join the process group, and agree on states of the run."""

import atexit
import functools
import gc
import os
from datetime import timedelta
from typing import Any

import torch
from mmengine.config import Config
from mmengine.device import get_device
from mmengine.dist import all_reduce, get_world_size, init_dist, is_distributed
from mmengine.hooks import Hook
from mmengine.runner import Runner
from mmengine.utils.dl_utils import set_multi_processing
from torch import distributed

from vt.errors import UserError
from vt.registry import HOOKS

from .process_variables import set_process_variables

TIMEOUT = 1800  # seconds to wait for other processes; PyTorch's default


def join_processes(cfg: Config) -> None:
    """Join the process group of the config's ``launcher``, with NCCL on GPUs or gloo on CPUs.

    On CPUs the model wrapper for CPUs is set in the config, because mmengine's needs GPUs. ``env_cfg.dist_cfg.timeout``
    is the time in seconds to wait for other processes. A second call has no effect.

    Raises:
        UserError: environment variables of the launcher are missing, or the process group cannot be formed.
    """
    cfg.launcher = set_process_variables(cfg.get('launcher', 'none'))
    if cfg.launcher == 'none':
        return
    if not is_distributed():
        atexit.register(_leave_process_group)
        try:
            _join(cfg.get('env_cfg', {}))
        except RuntimeError as error:
            raise UserError(
                'could not connect to the other processes at {MASTER_ADDR}:{MASTER_PORT} ({}): check that the port is '
                'free, that all of them have the same MASTER_ADDR and PORT (MASTER_PORT without tools/dist_*.sh), and '
                'that the host name of each machine resolves to its network (or set GLOO_SOCKET_IFNAME)'.format(
                    str(error).splitlines()[0], **os.environ
                )
            ) from error
    if get_device() == 'cpu':
        unused = cfg.get('find_unused_parameters', False)
        wrapper = dict(type='vt.CPUDistributedDataParallel', find_unused_parameters=unused)
        cfg.model_wrapper_cfg = wrapper | dict(cfg.get('model_wrapper_cfg') or {})


def _join(env_cfg: dict) -> None:
    dist_cfg = dict(dict(timeout=TIMEOUT), **env_cfg.get('dist_cfg', {}))
    timeout = timedelta(seconds=dist_cfg['timeout'])
    meeting = _meet_again(timeout)
    if get_device() == 'cpu':
        distributed.init_process_group('gloo', timeout=timeout, **meeting)
    else:  # in the order of mmengine's runner, which sets the start method of workers first
        set_multi_processing(**env_cfg.get('mp_cfg', {}), distributed=True)
        init_dist('pytorch', **dist_cfg, **meeting)


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
def _gloo_group(timeout: float) -> distributed.ProcessGroup:
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
    ``EMAHook`` runs afterwards, so that it averages equal buffers.

    All are averaged in one message.
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
