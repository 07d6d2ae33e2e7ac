"""Gradients of gradients: hand-written backward passes use the plain path when they are needed."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from . import plain

Gradients = tuple[Tensor | None, ...]


def differentiable_tokenize_gradients(
    queries: Tensor, maps: Sequence[Tensor], gradient: Tensor, passed: Sequence[Tensor | None]
) -> Gradients:
    """Gradients of ``(queries, None, *maps)`` that autograd can differentiate again.

    Args:
        queries: ``(levels, 1 or N, L, C)``.
        maps: a map or pixels of each level.
        gradient: gradient of the tokens, ``(levels, N, L, C)``.
        passed: other gradients of the maps, which are added.
    """

    def tokens(queries: Tensor, *maps: Tensor) -> tuple[Tensor, ...]:
        return tuple(plain.tokenize(x, rows) for x, rows in zip(maps, queries))

    queries_gradient, *gradients = _gradients(tokens, (queries, *maps), gradient)
    sums = [own if None in (own, other) else own + other for own, other in zip(gradients, passed)]
    return queries_gradient, None, *sums


def differentiable_project_gradients(
    keys: Tensor, values: Tensor, residual: bool, maps: Sequence[Tensor], gradients: Sequence[Tensor]
) -> Gradients:
    """Gradients of ``(keys, values, None, *maps)`` that autograd can differentiate again.

    Args:
        keys, values: ``(levels, N, L, C)``.
        residual: whether the projections were added to the maps.
        maps: a map or pixels of each level.
        gradients: gradient of each result.
    """
    function = plain.project_onto if residual else plain.project

    def read(keys: Tensor, values: Tensor, *maps: Tensor) -> tuple[Tensor, ...]:
        return tuple(function(x, k, v) for x, k, v in zip(maps, keys.unsqueeze(2), values.unsqueeze(2)))

    keys_gradient, values_gradient, *own = _gradients(read, (keys, values, *maps), gradients)
    return keys_gradient, values_gradient, None, *own


def _gradients(
    function: Callable[..., tuple[Tensor, ...]], tensors: Sequence[Tensor], gradients: Sequence[Tensor]
) -> Gradients:
    """A gradient per tensor of ``function(*tensors)``; None for tensors that require none."""
    # Views cut dependencies between the tensors: a gradient must not include paths through another argument.
    views = [tensor.view_as(tensor) for tensor in tensors]
    values, needed = function(*views), [view for view in views if view.requires_grad]
    gradients = [gradient.to(value.dtype) for value, gradient in zip(values, gradients)]
    found = iter(torch.autograd.grad(values, needed, gradients, create_graph=True))
    return tuple(next(found) if view.requires_grad else None for view in views)
