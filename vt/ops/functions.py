"""Tokenize and project as functions of autograd on several levels, each a map or its pixels, with one head.

They have the gradients of the paths ``'fused'`` and ``'triton'``, which are written by hand. Gradients of gradients use
the plain path. What a path computes:

- ``tokenize(queries, levels)``: tokens, followed by what their gradients need.
- ``tokenize_gradients(queries, levels, saved, gradient, passed, needs)``: for the queries, the biases, each level.
- ``project(keys, values, residual, levels)``: the projections, and a list of what their gradients need.
- ``project_gradients(keys, values, residual, levels, saved, gradients, needs)``: for the keys, the values, each level.

Tokens, keys and values are ``(levels, N, L, C)``, queries too, or ``(levels, 1, L, C)`` if all images share them.
``needs`` says which gradients are needed; the others are None.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from . import fused, plain, triton_path
from .maps import Gradients, Levels

FAST_PATHS = {'fused': fused, 'triton': triton_path}


def tokenize(path: str, levels: Levels, queries: Tensor, biases: Tensor | None = None) -> tuple[Tensor, Levels]:
    """Compute the tokens of all levels.

    Args:
        path: name of a fast path.
        levels: maps or pixels.
        queries: filters of each level.
        biases: ``(levels, C)``, already added to the levels, which are pixels then, but outside of autograd. Their
            gradients, sums over all pixels, are computed here; by the kernels without another pass over the maps.

    Returns:
        The tokens, and the levels: the backward pass adds the gradients of these to its own without another pass.
    """
    if not torch.is_grad_enabled():
        return FAST_PATHS[path].tokenize(queries, levels)[0], levels
    tokens, *passed = _Tokenize.apply(path, queries, biases, *levels)
    if biases is not None and biases.requires_grad:
        return tokens, passed
    return tokens, [after if x.requires_grad else x for x, after in zip(levels, passed)]


def project(path: str, levels: Levels, keys: Tensor, values: Tensor, residual: bool) -> Levels:
    """Compute the projection onto each level, with ``residual`` added to it."""
    if not torch.is_grad_enabled():
        return FAST_PATHS[path].project(keys, values, residual, levels)[0]
    return _Project.apply(path, residual, keys, values, *levels)


def with_biases(levels: Levels, biases: Tensor) -> list[Tensor]:
    """Return levels of the same values, of whose biases autograd knows."""
    return [x + (bias - bias.detach()).to(x.dtype) for x, bias in zip(levels, biases)]


class _Tokenize(torch.autograd.Function):
    @staticmethod
    def forward(ctx, path: str, queries: Tensor, biases: Tensor | None, *levels: Tensor) -> tuple[Tensor, ...]:
        tokens, *saved = FAST_PATHS[path].tokenize(queries, levels)
        ctx.path = path
        ctx.save_for_backward(queries, biases, *levels, *saved)
        ctx.set_materialize_grads(False)
        return tokens, *levels

    @staticmethod
    def backward(ctx, *gradients: Any) -> Gradients:
        gradient, *passed = gradients
        needs = ctx.needs_input_grad[1:]
        if gradient is None and not needs[1]:
            return None, None, None, *passed
        queries, biases, *saved = ctx.saved_tensors
        levels, saved = [*saved[: len(passed)]], [*saved[len(passed) :]]
        if gradient is None:
            gradient = queries.new_zeros(len(levels), levels[0].shape[0], *queries.shape[2:])
        if torch.is_grad_enabled():
            if needs[1]:
                levels = with_biases(levels, biases)
            own: Any = _differentiable(_plain_tokenize, (queries, *levels), [gradient])
            sums = [x if None in (x, y) else x + y for x, y in zip(own[1:], passed)]
            return None, own[0], torch.stack([x.sum((0, 1)) for x in sums]) if needs[1] else None, *sums
        if not torch.compiler.is_compiling():
            ctx.maybe_clear_saved_tensors()  # so that a path can free a map before its gradient is allocated
        return None, *FAST_PATHS[ctx.path].tokenize_gradients(queries, levels, saved, gradient, passed, needs)


class _Project(torch.autograd.Function):
    @staticmethod
    def forward(ctx, path: str, residual: bool, keys: Tensor, values: Tensor, *levels: Tensor) -> tuple[Tensor, ...]:
        outs, saved = FAST_PATHS[path].project(keys, values, residual, levels)
        ctx.path, ctx.residual = path, residual
        ctx.save_for_backward(keys, values, *levels, *saved)
        ctx.set_materialize_grads(False)
        return tuple(outs)

    @staticmethod
    def backward(ctx, *gradients: Any) -> Gradients:
        if all(gradient is None for gradient in gradients):
            return None, None, None, None, *gradients
        keys, values, *saved = ctx.saved_tensors
        levels, saved = [*saved[: len(gradients)]], [*saved[len(gradients) :]]
        filled = [torch.zeros_like(x) if gradient is None else gradient for x, gradient in zip(levels, gradients)]
        if torch.is_grad_enabled():
            function = _plain_project_onto if ctx.residual else _plain_project
            return None, None, *_differentiable(function, (keys, values, *levels), filled)
        operands = keys, values, ctx.residual, levels, saved, filled, ctx.needs_input_grad[2:]
        return None, None, *FAST_PATHS[ctx.path].project_gradients(*operands)


def _plain_tokenize(queries: Tensor, *levels: Tensor) -> tuple[Tensor, ...]:
    return (torch.stack([plain.tokenize(x, rows) for x, rows in zip(levels, queries)]),)


def _plain_project(keys: Tensor, values: Tensor, *levels: Tensor) -> tuple[Tensor, ...]:
    return tuple(plain.project(x, k, v) for x, k, v in zip(levels, keys.unsqueeze(2), values.unsqueeze(2)))


def _plain_project_onto(keys: Tensor, values: Tensor, *levels: Tensor) -> tuple[Tensor, ...]:
    return tuple(x + read for x, read in zip(levels, _plain_project(keys, values, *levels)))


def _differentiable(
    function: Callable[..., tuple[Tensor, ...]], tensors: Sequence[Tensor], gradients: Sequence[Tensor]
) -> Gradients:
    """Gradients of ``function(*tensors)`` that autograd can differentiate again; None for tensors that need none."""
    # Views cut dependencies between the tensors: a gradient must not include paths through another argument.
    views = [tensor.view_as(tensor) for tensor in tensors]
    values, needed = function(*views), [view for view in views if view.requires_grad]
    gradients = [gradient.to(value.dtype) for value, gradient in zip(values, gradients)]
    found = iter(torch.autograd.grad(values, needed, gradients, create_graph=True))
    return tuple(next(found) if view.requires_grad else None for view in views)
