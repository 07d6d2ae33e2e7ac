"""Choose the path, an implementation, that computes tokenize and project.

The fast paths compute several levels at once, see :mod:`vt.ops.functions`; others have the functions of
:mod:`vt.ops.plain`. ``x`` is a map ``(N, C, H, W)`` or its pixels ``(N, P, C)``; projections have the shape of ``x``.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor

from vt.errors import UserError

from . import functions, plain, triton_path
from .functions import FAST_PATHS
from .maps import in_shape_of, scaled, to_pixels
from .precision import cast_as_product, has_autocast, without_autocast
from .triton_check import is_trusted

PATHS: dict[str, Any] = {'plain': plain, **FAST_PATHS}  # others that are entered here can be set
_forced: str | None = None


def current_path(x: Tensor, num_tokens: int = 1, num_heads: int = 1, projects: bool = False) -> str:
    """Return the name of the path for ``x``: the one set by :func:`use_path`, or the fastest that supports ``x``.

    - ``'triton'``, Triton kernels: bf16 or fp16 in channels_last on an NVIDIA GPU, if Triton is installed, the kernels
      support the sizes and pass a check on small maps.
    - ``'fused'``, matrix products with hand-written gradients: CPUs, and all other cases.
    - ``'plain'``, the equations: during tracing, which needs PyTorch's own operators; and to project on a GPU, where it
      was the faster of the two at all ten sizes of VT-ResNet-50's and 101's modules that were measured.

    Args:
        x: X, a map ``(N, C, H, W)`` or pixels ``(N, P, C)``, in the precision of the computation.
        num_tokens: L.
        num_heads: heads of the attention.
        projects: the operation is project, not tokenize.

    Raises:
        UserError: ``'triton'`` is set, but does not support ``x``.
    """
    if _forced == 'triton' and not triton_path.supports(x, num_tokens, num_heads):
        raise UserError(
            f'the Triton kernels do not support {num_heads} heads and {num_tokens} tokens on {tuple(x.shape)}, '
            f'{x.dtype}, {x.device.type}: see vt.ops.triton_path.supports, or use another path'
        )
    if is_plain():
        return 'plain'
    if _forced:
        return _forced
    if triton_path.supports(x, num_tokens, num_heads) and is_trusted(x, num_tokens):
        return 'triton'
    return 'plain' if projects and x.device.type == 'cuda' else 'fused'


def is_plain() -> bool:
    """Whether the path is ``'plain'`` for every ``x``: set by :func:`use_path`, or during tracing.

    A module with a fast path of its own uses its equations then.
    """
    return _forced == 'plain' or (_forced is None and torch.jit.is_tracing())


@contextmanager
def use_path(name: str) -> Iterator[None]:
    """Use one path, ``'plain'``, ``'fused'`` or ``'triton'``, inside a ``with`` block.

    Raises:
        UserError: an unknown path.
    """
    global _forced
    if name not in PATHS:
        raise UserError(f'vt.ops has no path {name!r}: choose one of {", ".join(PATHS)}')
    previous, _forced = _forced, name
    try:
        yield
    finally:
        _forced = previous


def tokenize(x: Tensor, queries: Tensor, num_heads: int = 1, scale: float = 1.0) -> Tensor:
    """Compute tokens ``(N, L, C)`` from pixels; arguments as in :func:`vt.ops.plain.tokenize`."""
    x, queries = cast_as_product(x, queries)
    name = current_path(x, queries.shape[-2], num_heads)
    with _as_cast(name, x):
        if name not in FAST_PATHS or num_heads > 1:
            return _plain_or_other(name).tokenize(x, queries, num_heads, scale)
        queries = scaled(queries, scale).view(1, -1, *queries.shape[-2:])
        return functions.tokenize(name, [to_pixels(x) if name == 'triton' else x], queries)[0].squeeze(0)


def project(x: Tensor, keys: Tensor, values: Tensor, scale: float = 1.0) -> Tensor:
    """Compute the projection of the tokens onto the pixels; arguments as in :func:`vt.ops.plain.project`."""
    return _project(x, keys, values, scale, residual=False)


def project_onto(x: Tensor, keys: Tensor, values: Tensor, scale: float = 1.0) -> Tensor:
    """Add the projection of the tokens to the pixels; arguments as in :func:`vt.ops.plain.project_onto`."""
    return _project(x, keys, values, scale, residual=True)


def _project(x: Tensor, keys: Tensor, values: Tensor, scale: float, residual: bool) -> Tensor:
    x, keys, values = cast_as_product(x, keys, values)
    num_heads = keys.shape[1]
    name = current_path(x, keys.shape[2], num_heads, projects=True)
    with _as_cast(name, x):
        if name not in FAST_PATHS or num_heads > 1:
            path = _plain_or_other(name)
            return (path.project_onto if residual else path.project)(x, keys, values, scale)
        tokens = scaled(keys, scale).transpose(0, 1), values.transpose(0, 1)
        if name == 'triton':
            return in_shape_of(x, functions.project(name, [to_pixels(x)], *tokens, residual)[0])
        return functions.project(name, [x], *tokens, residual)[0]


def tokenize_levels(
    levels: Sequence[Tensor], queries: Tensor, scale: float = 1.0, biases: Tensor | None = None
) -> tuple[Tensor, Sequence[Tensor]]:
    """Compute the tokens of several maps.

    Args:
        levels: pixels ``(N, P, C)`` of maps of any sizes, the largest first: it decides on the path.
        queries: filters of each level, ``(levels, 1 or N, L, C)``.
        scale: factor on the logits.
        biases: ``(levels, C)``, already added to the pixels, but outside of autograd: their gradients are computed
            here, by the Triton kernels without another pass over the maps. None if autograd knows of them.

    Returns:
        Tokens, ``(levels, N, L, C)``, and the levels, whose gradients are added to those of this function. Only these
        may be used then: projecting onto them takes less time than onto the arguments.
    """
    *levels, queries = cast_as_product(*levels, queries)
    name = _path_of_levels(levels, queries.shape[2])
    with _as_cast(name, queries):
        if name in FAST_PATHS:
            return functions.tokenize(name, levels, scaled(queries, scale), biases)
        levels = levels if biases is None else functions.with_biases(levels, biases)
        tokens = [PATHS[name].tokenize(x, rows, 1, scale) for x, rows in zip(levels, queries)]
        return torch.stack(tokens), levels


def project_onto_levels(levels: Sequence[Tensor], keys: Tensor, values: Tensor, scale: float = 1.0) -> Sequence[Tensor]:
    """Add the projection of the tokens of each level, keys and values ``(levels, N, L, C)``, to its pixels."""
    *levels, keys, values = cast_as_product(*levels, keys, values)
    name = _path_of_levels(levels, keys.shape[2], projects=True)
    with _as_cast(name, keys):
        if name in FAST_PATHS:
            return functions.project(name, levels, scaled(keys, scale), values, residual=True)
        heads = zip(levels, keys.unsqueeze(2), values.unsqueeze(2))
        return [PATHS[name].project_onto(x, k, v, scale) for x, k, v in heads]


def _plain_or_other(name: str) -> Any:
    """The path that computes several heads, or that is not one of the fast ones."""
    return plain if name in FAST_PATHS else PATHS[name]


def _path_of_levels(levels: Sequence[Tensor], num_tokens: int, projects: bool = False) -> str:
    name = current_path(levels[0], num_tokens, projects=projects)
    return 'fused' if name == 'triton' and len(levels) > triton_path.MOST_LEVELS else name


def _as_cast(name: str, x: Tensor) -> AbstractContextManager:
    """Return a context that switches autocast off, so that a path computes in the precision of its operands."""
    device = x.device.type
    return without_autocast(device) if name != 'triton' and has_autocast(device) else nullcontext()
