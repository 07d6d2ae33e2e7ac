"""The precision that autocast asks for, and where it is slow."""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor


def cast_as_product(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Under autocast all tensors in its precision, as a matrix product casts them; otherwise as they are.

    Autocast leaves float64 alone, and so does this where the first tensor, the map, is in it.
    """
    device = tensors[0].device.type
    if not has_autocast(device) or tensors[0].dtype == torch.float64:
        return tensors
    return tuple(tensor.to(torch.get_autocast_dtype(device)) for tensor in tensors)


def has_autocast(device: str) -> bool:
    """Whether autocast is on for a type of device."""
    return _can_autocast(device) and torch.is_autocast_enabled(device)


def without_autocast(device: str) -> AbstractContextManager:
    """A context in which autocast is off for a type of device, also one that has none."""
    return torch.autocast(device, enabled=False) if _can_autocast(device) else nullcontext()


@torch.compiler.assume_constant_result  # which a compiler of PyTorch 2.11 cannot look into
def _can_autocast(device: str) -> bool:
    return torch.amp.is_autocast_available(device)


def trains_in_bfloat16_on_cpu(x: Tensor) -> bool:
    """Whether gradients of a bfloat16 tensor on a CPU are recorded; some of PyTorch's functions are slow in that."""
    return torch.is_grad_enabled() and x.dtype == torch.bfloat16 and x.device.type == 'cpu'
