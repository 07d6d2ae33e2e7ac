"""How a model is spread over processes: a copy for each on CPUs, or sharded (FSDP, ZeRO) where it does not fit."""

import warnings
from collections.abc import Iterable

import torch
from mmengine._strategy import FSDPStrategy as MMFSDPStrategy
from mmengine.device import get_device
from mmengine.dist import all_gather_object, is_distributed
from mmengine.logging import MMLogger
from mmengine.model import MMDistributedDataParallel
from mmengine.optim import ZeroRedundancyOptimizer as MMZeroRedundancyOptimizer
from mmengine.runner import Runner
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel

from vt.models.sync_batch_norm import use_cpu_sync_batch_norm
from vt.registry import MODEL_WRAPPERS, OPTIMIZERS, STRATEGIES


@MODEL_WRAPPERS.register_module()
class CPUDistributedDataParallel(MMDistributedDataParallel):
    """mmengine's wrapper for models on CPUs: no device is chosen, and SyncBN synchronises over gloo.

    Args:
        module: the model; its SyncBN layers are replaced in place.
        kwargs: those of mmengine's wrapper; ``device_ids`` is not used.
    """

    def __init__(self, module: nn.Module, **kwargs) -> None:
        kwargs = dict(broadcast_buffers=False) | kwargs | dict(device_ids=None)
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', FutureWarning)  # broadcast_buffers has a new name
            super().__init__(module=use_cpu_sync_batch_norm(module), **kwargs)


@STRATEGIES.register_module()
class FSDPStrategy(MMFSDPStrategy):
    """mmengine's FSDP, which resumes, and runs on CPUs too: weights, gradients and optimizer are spread over processes.

    Args:
        state_dict_cfg: ``'full'`` writes one checkpoint that every other run can load. mmengine's ``'local'`` writes a
            folder that can't be loaded weights-only.
        model_wrapper: arguments of FSDP; by default every process keeps a part of each weight
            (``sharding_strategy='FULL_SHARD'``).
        kwargs: those of mmengine's strategy.
    """

    def __init__(self, *, state_dict_cfg: str | dict = 'full', model_wrapper: dict | None = None, **kwargs) -> None:
        super().__init__(state_dict_cfg=state_dict_cfg, model_wrapper=model_wrapper or {}, **kwargs)
        if state_dict_cfg == 'local':
            raise ValueError("vt.FSDPStrategy: state_dict_cfg='local' can't be resumed; leave it at 'full'")
        if not is_distributed():
            raise ValueError('vt.FSDPStrategy is for several processes: start them with tools/dist_train.sh')

    def build_logger(self, *args, **kwargs) -> MMLogger:
        """Each process writes a log of its own, ``*_rank<N>.log``; the main one alone prints too."""
        return super().build_logger(*args, distributed=True, **kwargs)

    def _wrap_model(self, model: nn.Module) -> nn.Module:
        if get_device() == 'cpu':
            self.model_wrapper.setdefault('device_id', torch.device('cpu'))
            model = use_cpu_sync_batch_norm(model)
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', FutureWarning)  # set_state_dict_type is to go
            return super()._wrap_model(model)

    def optim_state_dict(self) -> dict:
        """The optimizer's state; of all processes together on the main one if ``state_dict_cfg='full'``.

        On CPUs it is gathered name by name (AdamW's ``exp_avg``, then ``exp_avg_sq``): PyTorch gathers all of a weight
        in one buffer, and there the results of the first names would be parts of it, which the last one overwrites.
        """
        if get_device() != 'cpu' or not self._is_full_state_dict():
            return super().optim_state_dict()
        whole = self.optim_wrapper.optimizer.state_dict()
        own_names = {name for state in whole['state'].values() for name in state}
        result = dict(whole, state={})
        for name in sorted(set().union(*all_gather_object(own_names))):
            part = {index: {name: state[name]} for index, state in whole['state'].items() if name in state}
            gathered = FullyShardedDataParallel.optim_state_dict(
                self.model, self.optim_wrapper.optimizer, dict(whole, state=part)
            )
            for parameter, state in gathered.get('state', {}).items():
                result['state'].setdefault(parameter, {})[name] = torch.as_tensor(state[name]).clone()
            result['param_groups'] = gathered.get('param_groups', result['param_groups'])
        return result

    def load_optim_state_dict(self, state_dict: dict) -> None:
        """Load the optimizer's state; mmengine gives PyTorch its arguments in an order of the past."""
        own = FullyShardedDataParallel.optim_state_dict_to_load(
            model=self.model, optim=self.optim_wrapper.optimizer, optim_state_dict=state_dict
        )
        self.optim_wrapper.load_state_dict(own)


@OPTIMIZERS.register_module()
class ZeroRedundancyOptimizer(MMZeroRedundancyOptimizer):
    """mmengine's ZeRO, stage 1: each process keeps the optimizer's state for a part of the weights.

    mmengine's collects the state from all processes while the main one alone writes a checkpoint, and waits for ever.
    Here all of them call :func:`gather_optimizer_state` before. Runs that name mmengine's get this one.

    Args:
        params: parameters, or groups of them.
        optimizer_type: name of an optimizer of ``torch.optim``.
        kwargs: its arguments.
    """

    def __init__(self, params: Iterable, optimizer_type: str, **kwargs) -> None:
        if not is_distributed():
            raise ValueError('ZeroRedundancyOptimizer is for several processes: start them with tools/dist_train.sh')
        super().__init__(params, optimizer_type, **kwargs)

    def state_dict(self) -> dict:
        """The state as it was gathered last, on the main process."""
        return super(MMZeroRedundancyOptimizer, self).state_dict()


def gather_optimizer_state(runner: Runner) -> None:
    """Bring what a ZeRO optimizer keeps in all processes to the main one, which saves it; all call this together."""
    optimizer = getattr(runner.optim_wrapper, 'optimizer', None)
    if isinstance(optimizer, ZeroRedundancyOptimizer):
        optimizer.consolidate_state_dict()
