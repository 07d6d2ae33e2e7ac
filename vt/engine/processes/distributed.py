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
from mmengine.hooks import Hook
from mmengine.model import BaseDataPreprocessor
from mmengine.runner import Runner
from mmengine.utils.dl_utils import set_multi_processing
from torch import distributed, nn

from vt.errors import UserError
from vt.registry import HOOKS

from .process_variables import set_process_variables
from .sync_batch_norm import CPUSyncBatchNorm

TIMEOUT = 1800  # seconds that a process waits for the others; PyTorch's own
EQUAL_EVERYWHERE = (nn.SyncBatchNorm, CPUSyncBatchNorm, BaseDataPreprocessor)  # no process differs in their buffers


def join_processes(cfg: Config) -> None:
    """Meet the other processes that the config's ``launcher`` started: over NCCL on GPUs, over gloo on CPUs.

    On GPUs it is mmengine's way, earlier than its runner would go it. On CPUs that would look for GPUs, and the model
    needs a wrapper for CPUs, which is entered in the config. ``env_cfg.dist_cfg.timeout`` is the time in seconds to
    wait for others. A second call changes nothing.

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
        except RuntimeError as error:
            raise UserError(
                'could not meet the other processes at {MASTER_ADDR}:{MASTER_PORT} ({}): is the port free, are all of '
                'them started with one MASTER_ADDR and PORT (MASTER_PORT without tools/dist_*.sh), and does each '
                "machine's host name lead to its network (else GLOO_SOCKET_IFNAME has to name it)?".format(
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
    else:  # the order of mmengine's runner, which chose the start method of workers first
        set_multi_processing(**env_cfg.get('mp_cfg', {}), distributed=True)
        init_dist('pytorch', **dist_cfg, **meeting)


def _meet_again(timeout: timedelta) -> dict:
    """Where processes meet that torchrun has started again: its store still holds addresses of those that ended."""
    attempt = os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')
    if attempt == '0' or os.environ.get('TORCHELASTIC_USE_AGENT_STORE') != 'True':
        return {}
    store, rank, world_size = next(distributed.rendezvous('env://', timeout=timeout))
    store = distributed.PrefixStore(f'attempt_{attempt}', store)
    return dict(store=store, rank=rank, world_size=world_size)


def _leave_process_group() -> None:
    """End the process group: a thread of gloo that holds a tensor aborts an interpreter that ends, with all work done.

    The group joins its threads when nothing refers to it, so the runner goes first.
    """
    gc.collect()
    if is_distributed():
        distributed.destroy_process_group()


class Agreement:
    """The largest of the numbers that the processes tell, read some time after it was told, so that none waits.

    Every process makes this, tells and reads at the same places of the run. Told at one iteration and read at the next,
    the number has arrived by then. It goes over gloo, on the CPU, and waits for no GPU. ``is_alone`` is true of one
    process, which need not wait for the next iteration.
    """

    def __init__(self, runner: Runner) -> None:
        dist_cfg = runner.cfg.get('env_cfg', {}).get('dist_cfg', {})
        self.is_alone = runner.world_size == 1
        self._group = None if self.is_alone else _gloo_group(dist_cfg.get('timeout', TIMEOUT))
        self._told: tuple[torch.Tensor, distributed.Work | None] | None = None

    def tell(self, number: int) -> None:
        """Tell the others a number; what was told before must have been read."""
        told, work = torch.tensor(number), None
        if not self.is_alone:
            work = distributed.all_reduce(told, distributed.ReduceOp.MAX, group=self._group, async_op=True)
        self._told = told, work

    def read(self) -> int | None:
        """The largest number that was told last; None if none was since the last reading."""
        if self._told is None:
            return None
        (told, work), self._told = self._told, None
        if work is not None:
            work.wait()
        return int(told)

    def wait(self) -> None:
        """Wait for all processes to come here."""
        if not self.is_alone:
            distributed.barrier(group=self._group)


@functools.cache
def _gloo_group(timeout: float) -> distributed.ProcessGroup:
    return distributed.new_group(backend='gloo', timeout=timedelta(seconds=timeout))


def any_process(condition: bool) -> bool:
    """Whether a condition holds in any process; all of them call this together."""
    flag = torch.tensor(int(condition))
    all_reduce(flag, 'max')
    return bool(flag)


@HOOKS.register_module()
class SyncBuffersHook(Hook):
    """Average the model's floating-point buffers, BN's running statistics, over all processes after each iteration.

    Each process keeps them over its own share of the data, and the main one alone writes checkpoints. mmengine's hook
    of this name averages at the ends of epochs alone. If it were done now and then, a run that stops for a checkpoint
    in between would round differently. A moving average of the weights follows: what it averages is equal everywhere.

    The buffers of one precision are one tensor on their way, and views of it afterwards: a handful of operations,
    however many layers there are. SyncBN's are equal in all processes and stay at home, as do a data preprocessor's,
    which are constants.
    """

    priority = 'HIGH'  # before EMAHook

    def after_train_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None, outputs: Any = None) -> None:
        if get_world_size() == 1:
            return
        for buffers in _differing_buffers(runner.model):
            together = torch.cat([buffer.detach().flatten() for buffer in buffers])
            sums = together.double()  # in which the average of equal numbers is that number
            all_reduce(sums)
            averages = (sums / get_world_size()).to(together.dtype)
            for buffer, average in zip(buffers, averages.split([buffer.numel() for buffer in buffers])):
                if buffer.is_contiguous():
                    buffer.data = average.view_as(buffer)
                else:
                    buffer.copy_(average.view_as(buffer))


def _differing_buffers(model: nn.Module) -> list[list[torch.Tensor]]:
    """The floating-point buffers that may differ between processes, by dtype.

    Those of a multiple of four entries come first: in one tensor they begin at multiples of 16 bytes, as kernels like.
    """
    parts = [part for part in model.modules() if not isinstance(part, EQUAL_EVERYWHERE)]
    buffers = {id(buffer): buffer for part in parts for buffer in part.buffers(recurse=False)}.values()
    found: dict[torch.dtype, list[torch.Tensor]] = {}
    for buffer in sorted(buffers, key=lambda buffer: buffer.numel() % 4 > 0):
        if buffer.is_floating_point():
            found.setdefault(buffer.dtype, []).append(buffer)
    return list(found.values())
