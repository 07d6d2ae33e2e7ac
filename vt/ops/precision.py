"""The precision that autocast asks for, and where it is slow."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


@contextmanager
def one_precision(*tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Under autocast all tensors in its precision, as a matrix product casts them, and autocast off inside.

    Autocast leaves float64 alone, and so does this where the first tensor, the map, is in it.
    """
    device = tensors[0].device.type
    on = torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)
    if not on or tensors[0].dtype == torch.float64:
        yield tensors
        return
    with torch.autocast(device, enabled=False):
        yield tuple(tensor.to(torch.get_autocast_dtype(device)) for tensor in tensors)


def trains_in_bfloat16_on_cpu(x: Tensor) -> bool:
    """Whether gradients of a bfloat16 tensor on a CPU are recorded; some of PyTorch's functions are slow in that."""
    return torch.is_grad_enabled() and x.dtype == torch.bfloat16 and x.device.type == 'cpu'
