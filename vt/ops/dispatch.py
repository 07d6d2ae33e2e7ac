"""The one place that chooses how tokenize and project are computed."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from . import fused, plain, sdpa

_PATHS = {'plain': plain, 'fused': fused, 'sdpa': sdpa}
_forced: str | None = None


def current_path(pixels: Tensor, num_tokens: int = 1, num_heads: int = 1) -> str:
    """Name of the path that computes on ``pixels``: the forced one, else the faster one on their device.

    Args:
        pixels: X, ``(N, P, C)``.
        num_tokens: L.
        num_heads: heads of the attention.
    """
    return _forced or ('sdpa' if pixels.is_cuda else 'fused')


@contextmanager
def use_path(name: str) -> Iterator[None]:
    """Force one path, ``'plain'``, ``'fused'`` or ``'sdpa'``, inside a ``with`` block.

    Raises:
        ValueError: no path has this name.
    """
    global _forced
    if name not in _PATHS:
        raise ValueError(f'vt.ops has no path {name!r}: choose one of {", ".join(_PATHS)}')
    previous, _forced = _forced, name
    try:
        yield
    finally:
        _forced = previous


def tokenize(pixels: Tensor, queries: Tensor, num_heads: int = 1, scale: float = 1.0) -> Tensor:
    """Group pixels ``(N, P, C)`` into tokens ``(N, L, C)``; see :func:`vt.ops.plain.tokenize`."""
    path = current_path(pixels, queries.shape[-2], num_heads)
    with _one_precision(pixels, queries) as tensors:
        return _PATHS[path].tokenize(*tensors, num_heads, scale)


def project(pixels: Tensor, keys: Tensor, values: Tensor, scale: float = 1.0) -> Tensor:
    """What pixels ``(N, P, C)`` read from the tokens, ``(N, P, C)``; see :func:`vt.ops.plain.project`."""
    path = current_path(pixels, keys.shape[2], keys.shape[1])
    with _one_precision(pixels, keys, values) as tensors:
        return _PATHS[path].project(*tensors, scale)


def project_onto(pixels: Tensor, keys: Tensor, values: Tensor, scale: float = 1.0, overwrite: bool = False) -> Tensor:
    """Pixels ``(N, P, C)`` plus what they read, ``(N, P, C)``; see :func:`vt.ops.plain.project_onto`.

    Args:
        overwrite: ``pixels`` may hold the result afterwards, where no gradient is asked for and the path can.
    """
    path = current_path(pixels, keys.shape[2], keys.shape[1])
    with _one_precision(pixels, keys, values) as tensors:
        if overwrite and path == 'fused' and not torch.is_grad_enabled():
            return fused.project_onto_(*tensors, scale)
        return _PATHS[path].project_onto(*tensors, scale)


@contextmanager
def _one_precision(*tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Under autocast all tensors in its precision, as a matrix product casts them, and autocast off inside."""
    device = tensors[0].device.type
    if not (torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)):
        yield tensors
        return
    dtype = torch.get_autocast_dtype(device)
    with torch.autocast(device, enabled=False):
        yield tuple(tensor.to(dtype) for tensor in tensors)
