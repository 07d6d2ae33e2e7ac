"""Runs of several processes: how they find each other, and what they have to agree on."""

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
from mmengine.hooks import EMAHook, Hook
from mmengine.runner import Runner
from mmengine.utils.dl_utils import set_multi_processing
from torch import nn

from vt.errors import UserError
from vt.registry import HOOKS

from .process_variables import set_process_variables

TIMEOUT = 1800  # seconds that a process waits for the others; PyTorch's own


def join_processes(cfg: Config) -> None:
    """Meet the other processes that the config's ``launcher`` started: over NCCL on GPUs, over gloo on CPUs.

    On GPUs it is mmengine's way, earlier than its runner would go it. On CPUs that would look for GPUs, and the model
    needs a wrapper for CPUs. ``env_cfg.dist_cfg.timeout`` is the time in seconds to wait for others.

    Args:
        cfg: its ``launcher`` and, on CPUs, its ``model_wrapper_cfg`` are set to what the runner needs. A second call
            changes nothing.

    Raises:
        UserError: the launcher's variables are not there, or the processes can't meet.
    """
    cfg.launcher = set_process_variables(cfg.get('launcher', 'none'))
    if cfg.launcher == 'none':
        return
    if not is_distributed():
        atexit.register(_leave_process_group)
        try:
            _join(cfg.get('env_cfg', {}))
        except torch.distributed.DistError as error:
            words = str(error).splitlines()[0]
            raise UserError(
                f'could not meet the other processes at {os.environ["MASTER_ADDR"]}:{os.environ["MASTER_PORT"]} '
                f'({words}): is the port free, and are all of them started with one MASTER_ADDR and PORT (MASTER_PORT '
                'without tools/dist_*.sh)?'
            ) from error
    if get_device() == 'cpu':
        _wrap_for_cpus(cfg)


def _join(env_cfg: dict) -> None:
    dist_cfg = dict(dict(timeout=TIMEOUT), **env_cfg.get('dist_cfg', {}))
    meeting = _meet_again(timedelta(seconds=dist_cfg['timeout']))
    if get_device() == 'cpu':
        torch.distributed.init_process_group('gloo', timeout=timedelta(seconds=dist_cfg['timeout']), **meeting)
    else:  # the order of mmengine's runner, which chose the start method of workers first
        set_multi_processing(**env_cfg.get('mp_cfg', {}), distributed=True)
        init_dist('pytorch', **dist_cfg, **meeting)


def _meet_again(timeout: timedelta) -> dict:
    """Where processes meet that torchrun has started again: its store still holds addresses of those that ended."""
    attempt = os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')
    if attempt == '0' or os.environ.get('TORCHELASTIC_USE_AGENT_STORE') != 'True':
        return {}
    store, rank, world_size = next(torch.distributed.rendezvous('env://', timeout=timeout))
    store = torch.distributed.PrefixStore(f'attempt_{attempt}', store)
    return dict(store=store, rank=rank, world_size=world_size)


def _wrap_for_cpus(cfg: Config) -> None:
    wrapper = dict(type='vt.CPUDistributedDataParallel')
    wrapper['find_unused_parameters'] = cfg.get('find_unused_parameters', False)
    cfg.model_wrapper_cfg = wrapper | dict(cfg.get('model_wrapper_cfg') or {})
    strategy = cfg.get('strategy') or {}
    if strategy.get('type') == 'DDPStrategy':
        strategy.setdefault('model_wrapper', cfg.model_wrapper_cfg)


def _leave_process_group() -> None:
    """End the process group's threads before the interpreter ends.

    A thread of gloo that still holds a tensor then aborts the process, after all work is done. The group joins its
    threads when nothing refers to it, so the runner goes first.
    """
    gc.collect()
    if is_distributed():
        torch.distributed.destroy_process_group()


def control_group(runner: Runner) -> torch.distributed.ProcessGroup | None:
    """A group over gloo for small messages on the CPU, which wait for no GPU; None in one process.

    All processes call this together the first time. It waits as long for others as the run does.
    """
    dist_cfg = runner.cfg.get('env_cfg', {}).get('dist_cfg', {})
    return _gloo_group(dist_cfg.get('timeout', TIMEOUT)) if runner.world_size > 1 else None


@functools.cache
def _gloo_group(timeout: float) -> torch.distributed.ProcessGroup:
    return torch.distributed.new_group(backend='gloo', timeout=timedelta(seconds=timeout))


def any_process(condition: bool) -> bool:
    """Whether a condition holds in any process; all of them call this together."""
    flag = torch.tensor(int(condition))
    all_reduce(flag, 'max')
    return bool(flag)


def sync_buffers(runner: Runner) -> None:
    """Average the floating-point buffers of the model, and of its moving average, over all processes.

    Each process keeps the running statistics of BN over its own share of the data, and the main one alone writes
    checkpoints. All processes call this together. In one process it changes nothing.

    Args:
        runner: a runner whose model is built; a list of hooks that holds an ``EMAHook`` gives the moving average.
    """
    averages = [hook.ema_model for hook in runner.hooks if isinstance(hook, EMAHook) and hasattr(hook, 'ema_model')]
    _average_buffers([runner.model, *averages])


def _average_buffers(models: list[nn.Module]) -> None:
    buffers = [buffer for model in models for buffer in model.buffers() if buffer.is_floating_point()]
    if get_world_size() == 1 or not buffers:
        return
    # In float64 the average of equal numbers is that number, for any number of processes.
    sums = torch.cat([buffer.detach().double().flatten() for buffer in buffers])
    all_reduce(sums)
    averages = (sums / get_world_size()).split([buffer.numel() for buffer in buffers])
    for buffer, average in zip(buffers, averages):
        buffer.copy_(average.view_as(buffer))


@HOOKS.register_module()
class SyncBuffersHook(Hook):
    """Average BN's running statistics over all processes after each iteration, and before a validation and a test.

    mmengine's hook of this name does so at the ends of epochs alone, and leaves out the moving average of the weights.
    If they were averaged now and then, a run that stops for a checkpoint in between would round differently.
    """

    priority = 'HIGH'  # before EMAHook, which then averages what is equal everywhere

    def after_train_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None, outputs: Any = None) -> None:
        _average_buffers([runner.model])

    def before_val(self, runner: Runner) -> None:
        sync_buffers(runner)

    def before_test(self, runner: Runner) -> None:
        sync_buffers(runner)
