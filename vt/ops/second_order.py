"""Gradients of gradients: hand-written backward passes use the plain path when they are needed."""

from collections.abc import Callable

import torch
from torch import Tensor


def differentiable_gradients(function: Callable[..., Tensor], tensors: tuple[Tensor, ...], gradient: Tensor) -> tuple:
    """Compute gradients of ``function(*tensors)`` that autograd can differentiate again.

    Args:
        function: function of the plain path.
        tensors: its arguments.
        gradient: gradient of its output.

    Returns:
        A gradient per tensor; None for tensors that require none.
    """
    # Views cut dependencies between the tensors: a gradient must not include paths through another argument.
    views = [tensor.view_as(tensor) for tensor in tensors]
    value, needed = function(*views), [view for view in views if view.requires_grad]
    gradients = iter(torch.autograd.grad(value, needed, gradient.to(value.dtype), create_graph=True))
    return tuple(next(gradients) if view.requires_grad else None for view in views)


def of_one_head(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Wrap ``project`` or ``project_onto`` of the plain path for keys and values of one head, ``(N, L, C)``."""
    return lambda x, keys, values, scale=1.0: function(x, keys.unsqueeze(1), values.unsqueeze(1), scale)
