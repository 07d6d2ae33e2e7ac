"""Distribute a model over processes: DDP on CPUs, FSDP and ZeRO."""

import warnings
from collections.abc import Iterable

import torch
from mmengine._strategy import FSDPStrategy as MMFSDPStrategy
from mmengine.device import get_device
from mmengine.dist import all_gather_object, is_distributed
from mmengine.logging import MMLogger
from mmengine.model import MMDistributedDataParallel, MMFullyShardedDataParallel
from mmengine.runner import Runner
from torch import nn
from torch.distributed import optim

from vt.errors import UserError
from vt.registry import MODEL_WRAPPERS, OPTIMIZERS, STRATEGIES

from .sync_batch_norm import use_cpu_sync_batch_norm


@MODEL_WRAPPERS.register_module()
class CPUDistributedDataParallel(MMDistributedDataParallel):
    """mmengine's DDP wrapper for models on CPUs: no device is set, and SyncBN synchronises over gloo."""

    def __init__(self, module: nn.Module, **kwargs) -> None:
        kwargs = dict(broadcast_buffers=False) | kwargs | dict(device_ids=None)
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', FutureWarning)  # broadcast_buffers was renamed
            super().__init__(module=use_cpu_sync_batch_norm(module), **kwargs)


@MODEL_WRAPPERS.register_module()
class CPUFullyShardedDataParallel(MMFullyShardedDataParallel):
    """mmengine's FSDP wrapper for models on CPUs, see :class:`CPUDistributedDataParallel`."""

    def __init__(self, module: nn.Module, **kwargs) -> None:
        super().__init__(use_cpu_sync_batch_norm(module), **kwargs | dict(device_id=torch.device('cpu')))


@STRATEGIES.register_module()
class FSDPStrategy(MMFSDPStrategy):
    """mmengine's FSDP strategy with resume, also on CPUs: weights, gradients and optimizer state are sharded.

    Args:
        model_wrapper: options of the FSDP wrapper.
        **kwargs: further arguments of mmengine's strategy. ``state_dict_cfg`` is always ``'full'``: one checkpoint
            that every other run can load.

    Raises:
        UserError: there is only one process.
    """

    def __init__(self, *, model_wrapper: dict | None = None, **kwargs) -> None:
        if not is_distributed():
            raise UserError('vt.FSDPStrategy needs several processes: start them with tools/dist_train.sh')
        cpu = dict(type='vt.CPUFullyShardedDataParallel') if get_device() == 'cpu' else {}
        super().__init__(model_wrapper=cpu | (model_wrapper or {}), state_dict_cfg='full', **kwargs)

    def build_logger(self, *args, **kwargs) -> MMLogger:
        """Build a logger; each process writes its own file ``*_rank<N>.log``, and only the main process prints."""
        return super().build_logger(*args, distributed=True, **kwargs)

    def optim_state_dict(self) -> dict:
        """Gather the optimizer's state of all processes on the main one.

        On CPUs it is gathered name by name (``exp_avg`` of AdamW, then ``exp_avg_sq``). PyTorch gathers all names of a
        weight in one buffer, where on CPUs the last name would overwrite the others.
        """
        result = super().optim_state_dict()
        if get_device() != 'cpu':
            return result
        own = self.optim_wrapper.optimizer.state_dict()
        names = {name for state in own['state'].values() for name in state}
        for name in sorted(set().union(*all_gather_object(names))):
            part = {index: {name: state[name]} for index, state in own['state'].items() if name in state}
            gathered = self.model.optim_state_dict(self.model, self.optim_wrapper.optimizer, dict(own, state=part))
            for parameter, state in gathered.get('state', {}).items():
                result['state'][parameter][name] = torch.as_tensor(state[name]).clone()
        return result

    def load_optim_state_dict(self, state_dict: dict) -> None:
        """Load the optimizer's state; mmengine passes the arguments to PyTorch in an outdated order."""
        own = self.model.optim_state_dict_to_load(
            model=self.model, optim=self.optim_wrapper.optimizer, optim_state_dict=state_dict
        )
        self.optim_wrapper.load_state_dict(own)


@OPTIMIZERS.register_module()
class ZeroRedundancyOptimizer(optim.ZeroRedundancyOptimizer):
    """ZeRO stage 1: each process keeps the optimizer state for a part of the weights.

    It replaces mmengine's optimizer of this name, which waits forever when a checkpoint is written. Here all processes
    call :func:`gather_optimizer_state` before.

    Args:
        params: parameters to optimise.
        optimizer_type: name of an optimizer of ``torch.optim``.
        **kwargs: arguments of that optimizer.

    Raises:
        UserError: there is only one process.
    """

    def __init__(self, params: Iterable, optimizer_type: str, **kwargs) -> None:
        if not is_distributed():
            raise UserError('ZeroRedundancyOptimizer needs several processes: start them with tools/dist_train.sh')
        super().__init__(params, getattr(torch.optim, optimizer_type), **kwargs)


def gather_optimizer_state(runner: Runner) -> None:
    """Gather the state of a ZeRO optimizer on the main process, which saves it. Call it in all processes."""
    optimizer = getattr(runner.optim_wrapper, 'optimizer', None)
    if isinstance(optimizer, ZeroRedundancyOptimizer):
        optimizer.consolidate_state_dict()
