"""Gradients of gradients: where they are asked for, a backward pass by hand goes through the plain path instead."""

from collections.abc import Callable

import torch
from torch import Tensor


def differentiable_gradients(function: Callable[..., Tensor], tensors: tuple[Tensor, ...], gradient: Tensor) -> tuple:
    """Gradients of ``function(*tensors)``, which autograd can differentiate once more.

    Args:
        function: the plain path's.
        tensors: what it is called with.
        gradient: of its value.

    Returns:
        One for each tensor, None where it requires none.
    """
    # Views, since a tensor may have been made from another one, whose gradient is not to include the way through it.
    views = [tensor.view_as(tensor) for tensor in tensors]
    value, needed = function(*views), [view for view in views if view.requires_grad]
    gradients = iter(torch.autograd.grad(value, needed, gradient.to(value.dtype), create_graph=True))
    return tuple(next(gradients) if view.requires_grad else None for view in views)


def of_one_head(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """``project`` or ``project_onto`` of the plain path with keys and values of one head, ``(N, L, C)``."""
    return lambda x, keys, values, scale=1.0: function(x, keys.unsqueeze(1), values.unsqueeze(1), scale)
