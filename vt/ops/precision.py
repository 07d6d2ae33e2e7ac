"""Precision under autocast."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

_kept: dict[tuple, tuple[tuple[Tensor, ...], Any]] | None = None  # by precision and weights


@contextmanager
def constant_weights() -> Iterator[None]:
    """Assume inside a ``with`` block that weights do not change: :func:`cast_and_cache` computes their casts once."""
    global _kept
    previous, _kept = _kept, {}
    try:
        yield
    finally:
        _kept = previous


def cast_and_cache(dtype: torch.dtype, compute: Callable[..., Any], *weights: Tensor) -> Any:
    """Return ``compute(*weights)``, whose result is in the precision ``dtype``.

    In :func:`constant_weights`, without gradients, it is what the first call with these weights and precision returned.
    """
    if _kept is None or torch.is_grad_enabled() or not all(isinstance(weight, Parameter) for weight in weights):
        return compute(*weights)
    place = (dtype, *map(id, weights))
    if place not in _kept:
        _kept[place] = weights, compute(*weights)  # which keeps the weights, too, so that their ids stay theirs
    return _kept[place][1]


def cast_as_product(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Cast tensors to the precision of autocast, as a matrix product does; without autocast return them unchanged.

    If the first tensor, the map, is in float64, nothing is cast, because autocast does not cast float64 either.
    """
    device = tensors[0].device.type
    if not has_autocast(device) or tensors[0].dtype == torch.float64:
        return tensors
    dtype = torch.get_autocast_dtype(device)
    return tuple(cast_and_cache(dtype, lambda weight: weight.to(dtype), tensor) for tensor in tensors)


def has_autocast(device: str) -> bool:
    """Whether autocast is enabled for a type of device, such as ``'cuda'``."""
    return _can_autocast(device) and torch.is_autocast_enabled(device)


def without_autocast(device: str) -> AbstractContextManager:
    """Return a context that disables autocast for a type of device; it does nothing if the device has no autocast."""
    return torch.autocast(device, enabled=False) if _can_autocast(device) else nullcontext()


@torch.compiler.assume_constant_result  # the compiler of PyTorch 2.11 cannot trace it
def _can_autocast(device: str) -> bool:
    return torch.amp.is_autocast_available(device)


def trains_in_bfloat16_on_cpu(x: Tensor) -> bool:
    """Whether a tensor is bfloat16 on a CPU with gradients enabled, where some functions of PyTorch are slow."""
    return torch.is_grad_enabled() and x.dtype == torch.bfloat16 and x.device.type == 'cpu'
