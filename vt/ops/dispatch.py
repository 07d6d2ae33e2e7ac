"""The one place that chooses how tokenize and project are computed."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor

from . import plain, sdpa

_PATHS = {'plain': plain, 'sdpa': sdpa}
_forced: str | None = None


def current_path(pixels: Tensor) -> str:
    """Name of the path that computes on ``pixels``: the forced one, else the faster one on their device.

    On CUDA a fused kernel saves the attention map's trip through memory. On a CPU, at the sizes of a classifier's
    last stage, neither path wins both forward and backward, so the one without surprises is taken.
    """
    return _forced or ('sdpa' if pixels.is_cuda else 'plain')


@contextmanager
def use_path(name: str) -> Iterator[None]:
    """Force one path, ``'plain'`` or ``'sdpa'``, inside a ``with`` block.

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
    return _PATHS[current_path(pixels)].tokenize(pixels, queries, num_heads, scale)


def project(pixels: Tensor, keys: Tensor, values: Tensor, scale: float = 1.0) -> Tensor:
    """What pixels ``(N, P, C)`` read from the tokens, ``(N, P, C)``; see :func:`vt.ops.plain.project`."""
    return _PATHS[current_path(pixels)].project(pixels, keys, values, scale)


def project_onto(pixels: Tensor, keys: Tensor, values: Tensor, scale: float = 1.0) -> Tensor:
    """Pixels ``(N, P, C)`` plus what they read, ``(N, P, C)``; see :func:`vt.ops.plain.project_onto`."""
    return _PATHS[current_path(pixels)].project_onto(pixels, keys, values, scale)
