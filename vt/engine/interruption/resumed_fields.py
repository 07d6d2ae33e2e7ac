"""Check the fields of a checkpoint that a resumed run reads later: each must be like the run's own."""

from numbers import Number
from typing import Any

import torch
from mmengine.optim import OptimWrapper, OptimWrapperDict
from mmengine.runner import Runner

from .resumed_settings import OF_SCHEDULES


def check_fields(runner: Runner, checkpoint: dict) -> None:
    """Raise a ``ValueError`` that names a field whose value could not be one of this run."""
    meta, infos = checkpoint['meta'], checkpoint['message_hub']['runtime_info']
    _require_like('meta', dict(epoch=0, iter=0), meta)
    counts = [meta['epoch'], meta['iter'], *(checkpoint.get('progress') or {}).values()]
    if any(type(count) is not int or not 0 <= count < 2**53 for count in counts):
        raise ValueError('meta.epoch, meta.iter or progress is not a whole number of at least 0')
    for key, value in infos.items():
        if str(key).startswith('best_score'):
            _require_like(key, 0.0, value)
        elif str(key).startswith('early_stopping/'):
            _require_like(key, dict(wait_count=0, best_score=0.0), value)
    for key, history in checkpoint['message_hub']['log_scalars'].items():
        if any(numbers.ndim != 1 or numbers.dtype.kind not in 'biuf' for numbers in getattr(history, 'data', ())):
            raise ValueError(f'the history of {key} is not one of numbers')
    if isinstance(runner.optim_wrapper, OptimWrapper) and not isinstance(runner.optim_wrapper, OptimWrapperDict):
        _check_optimizer(runner.optim_wrapper.optimizer, checkpoint['optimizer'])
    schedulers = runner.param_schedulers if isinstance(runner.param_schedulers, list) else []
    for own, state in zip(schedulers, checkpoint.get('param_schedulers') or []):
        _require_like('param_schedulers', {key: own.state_dict().get(key) for key in state}, state)
    parameters, gradients = [*runner.model.parameters()], checkpoint.get('gradients') or []
    if any(gradient is not None and gradient.shape != own.shape for own, gradient in zip(parameters, gradients)):
        raise ValueError('gradients are not those of the parameters')


def _check_optimizer(own: torch.optim.Optimizer, given: dict) -> None:
    for group, held in zip(own.param_groups, given['param_groups']):
        usual = {key: 0.0 if key.startswith(OF_SCHEDULES) else None for key in held.keys() - {'params'}}
        _require_like('optimizer', {key: group.get(key, value) for key, value in usual.items()}, held)
    indices = [index for held in given['param_groups'] for index in held['params']]
    has_sums = not type(own).__module__.startswith('torch.optim')  # or other shapes
    for index, parameter in zip(indices, (each for group in own.param_groups for each in group['params'])):
        for key, value in given['state'].get(index, {}).items():
            is_like = isinstance(value, torch.Tensor) and (has_sums or value.shape == parameter.shape)
            if not (is_like or _is_number(value) or value is None or key in ('row_var', 'col_var')):  # of Adafactor
                raise ValueError(f'optimizer.state.{index}.{key} is not one of a parameter of {tuple(parameter.shape)}')


def _require_like(name: str, own: Any, given: Any) -> None:
    """Raise a ``ValueError`` if a value has another kind than one of the run, unless that is None or another object."""
    if isinstance(own, dict):
        for key, value in own.items():
            _require_like(f'{name}.{key}', value, given[key])
    elif isinstance(own, (list, tuple)):
        for value in given if own else ():
            _require_like(name, own[0], value)
    elif not _fits(own, given):
        raise ValueError(f'{name} is of type {type(given).__name__}')


def _fits(own: Any, given: Any) -> bool:
    if isinstance(own, str):
        return isinstance(given, str)
    return not isinstance(own, Number) or _is_number(given) or (isinstance(own, bool) and given is None)


def _is_number(value: Any) -> bool:
    return isinstance(value, Number) or (isinstance(value, torch.Tensor) and value.numel() == 1)
