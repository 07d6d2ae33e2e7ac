"""How a model is spread over processes: a copy for each on CPUs, or sharded (FSDP, ZeRO) where it does not fit."""

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
    """mmengine's wrapper for models on CPUs: no device is chosen, and SyncBN synchronises over gloo."""

    def __init__(self, module: nn.Module, **kwargs) -> None:
        kwargs = dict(broadcast_buffers=False) | kwargs | dict(device_ids=None)
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', FutureWarning)  # broadcast_buffers has a new name
            super().__init__(module=use_cpu_sync_batch_norm(module), **kwargs)


@MODEL_WRAPPERS.register_module()
class CPUFullyShardedDataParallel(MMFullyShardedDataParallel):
    """As :class:`CPUDistributedDataParallel`, for FSDP."""

    def __init__(self, module: nn.Module, **kwargs) -> None:
        super().__init__(use_cpu_sync_batch_norm(module), **kwargs | dict(device_id=torch.device('cpu')))


@STRATEGIES.register_module()
class FSDPStrategy(MMFSDPStrategy):
    """mmengine's FSDP, which resumes, and runs on CPUs too: weights, gradients and optimizer are spread over processes.

    It takes the arguments of mmengine's, but for ``state_dict_cfg``: it writes one checkpoint that every other run can
    load (``'full'``).
    """

    def __init__(self, *, model_wrapper: dict | None = None, **kwargs) -> None:
        if not is_distributed():
            raise UserError('vt.FSDPStrategy is for several processes: start them with tools/dist_train.sh')
        cpu = dict(type='vt.CPUFullyShardedDataParallel') if get_device() == 'cpu' else {}
        super().__init__(model_wrapper=cpu | (model_wrapper or {}), state_dict_cfg='full', **kwargs)

    def build_logger(self, *args, **kwargs) -> MMLogger:
        """Each process writes a log of its own, ``*_rank<N>.log``; the main one alone prints too."""
        return super().build_logger(*args, distributed=True, **kwargs)

    def optim_state_dict(self) -> dict:
        """The optimizer's state, of all processes together on the main one.

        On CPUs it is gathered name by name (AdamW's ``exp_avg``, then ``exp_avg_sq``): PyTorch gathers all of a weight
        in one buffer, and there the results of the first names would be parts of it, which the last one overwrites.
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
        """Load the optimizer's state; mmengine gives PyTorch its arguments in an order of the past."""
        own = self.model.optim_state_dict_to_load(
            model=self.model, optim=self.optim_wrapper.optimizer, optim_state_dict=state_dict
        )
        self.optim_wrapper.load_state_dict(own)


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
