"""How a model is spread over processes: a copy for each on CPUs; ZeRO, which shards the optimizer's state."""

import warnings
from collections.abc import Iterable

import torch
from mmengine.dist import is_distributed
from mmengine.model import MMDistributedDataParallel
from mmengine.runner import Runner
from torch import nn
from torch.distributed import optim

from vt.errors import UserError
from vt.registry import MODEL_WRAPPERS, OPTIMIZERS

from .sync_batch_norm import use_cpu_sync_batch_norm


@MODEL_WRAPPERS.register_module()
class CPUDistributedDataParallel(MMDistributedDataParallel):
    """mmengine's wrapper for models on CPUs: no device is chosen, and SyncBN synchronises over gloo."""

    def __init__(self, module: nn.Module, **kwargs) -> None:
        kwargs = dict(broadcast_buffers=False) | kwargs | dict(device_ids=None)
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', FutureWarning)  # broadcast_buffers has a new name
            super().__init__(module=use_cpu_sync_batch_norm(module), **kwargs)


@OPTIMIZERS.register_module()
class ZeroRedundancyOptimizer(optim.ZeroRedundancyOptimizer):
    """ZeRO, stage 1: each process keeps the optimizer's state for a part of the weights.

    mmengine's collects the state from all processes while the main one alone writes a checkpoint, and waits for ever.
    Here all of them call :func:`gather_optimizer_state` before. It takes parameters, the name of an optimizer of
    ``torch.optim``, and that one's arguments. Runs that name mmengine's get this one.
    """

    def __init__(self, params: Iterable, optimizer_type: str, **kwargs) -> None:
        if not is_distributed():
            raise UserError('ZeroRedundancyOptimizer is for several processes: start them with tools/dist_train.sh')
        super().__init__(params, getattr(torch.optim, optimizer_type), **kwargs)


def gather_optimizer_state(runner: Runner) -> None:
    """Bring what a ZeRO optimizer keeps in all processes to the main one, which saves it; all call this together."""
    optimizer = getattr(runner.optim_wrapper, 'optimizer', None)
    if isinstance(optimizer, ZeroRedundancyOptimizer):
        optimizer.consolidate_state_dict()
