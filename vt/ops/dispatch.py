"""The one place that chooses how tokenize and project are computed.

What is called ``x`` is a map ``(N, C, H, W)`` or its pixels ``(N, P, C)``; results as large as ``x`` have its shape.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from . import fused, plain, sdpa, triton_path
from .maps import in_shape_of, to_pixels
from .precision import autocast_dtype

_PATHS = {'plain': plain, 'fused': fused, 'sdpa': sdpa, 'triton': triton_path}
FLASH_CHANNELS = 256  # of a head: the most that flash attention takes
_forced: str | None = None


def current_path(pixels: Tensor, num_tokens: int = 1, num_heads: int = 1) -> str:
    """Name of the path that computes on ``pixels``: the forced one, else the fastest that can on their device.

    - ``'triton'``, our own kernels: one head on an NVIDIA GPU, where Triton is there and the sizes fit.
    - ``'sdpa'``, PyTorch's flash attention: half precision on a GPU otherwise, heads of up to 256 channels.
    - ``'fused'``, matrix products and gradients by hand: a CPU, and whatever else; it leaves several heads to the plain
      path.
    - ``'plain'``, the reference, where it is forced.

    Args:
        pixels: X, ``(N, P, C)``.
        num_tokens: L.
        num_heads: heads of the attention.
    """
    if _forced:
        return _forced
    if triton_path.supports(pixels, num_tokens, num_heads):
        return 'triton'
    return 'sdpa' if _flash_takes(pixels, num_heads) else 'fused'


def _flash_takes(pixels: Tensor, num_heads: int) -> bool:
    dtype = autocast_dtype(pixels) or pixels.dtype
    return pixels.is_cuda and dtype.itemsize == 2 and pixels.shape[-1] // num_heads <= FLASH_CHANNELS


@contextmanager
def use_path(name: str) -> Iterator[None]:
    """Force one path, ``'plain'``, ``'fused'``, ``'sdpa'`` or ``'triton'``, inside a ``with`` block.

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


def tokenize(x: Tensor, queries: Tensor, num_heads: int = 1, scale: float = 1.0) -> Tensor:
    """Group pixels into tokens ``(N, L, C)``; see :func:`vt.ops.plain.tokenize`."""
    path = current_path(to_pixels(x), queries.shape[-2], num_heads)
    with _one_precision(x, queries) as (x, queries):
        if path == 'fused':
            return fused.tokenize(x, queries, num_heads, scale)
        return _PATHS[path].tokenize(to_pixels(x), queries, num_heads, scale)


def project(x: Tensor, keys: Tensor, values: Tensor, scale: float = 1.0) -> Tensor:
    """What the pixels read from the tokens; see :func:`vt.ops.plain.project`."""
    path = current_path(to_pixels(x), keys.shape[2], keys.shape[1])
    with _one_precision(x, keys, values) as (x, keys, values):
        if path == 'fused':
            return fused.project(x, keys, values, scale)
        return in_shape_of(x, _PATHS[path].project(to_pixels(x), keys, values, scale))


def project_onto(x: Tensor, keys: Tensor, values: Tensor, scale: float = 1.0, overwrite: bool = False) -> Tensor:
    """The pixels plus what they read; see :func:`vt.ops.plain.project_onto`.

    Args:
        overwrite: ``x`` may hold the result afterwards, where no gradient is asked for and the path can.
    """
    path = current_path(to_pixels(x), keys.shape[2], keys.shape[1])
    with _one_precision(x, keys, values) as (x, keys, values):
        if path == 'fused':
            write = fused.project_onto_ if overwrite and not torch.is_grad_enabled() else fused.project_onto
            return write(x, keys, values, scale)
        return in_shape_of(x, _PATHS[path].project_onto(to_pixels(x), keys, values, scale))


@contextmanager
def _one_precision(*tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Under autocast all tensors in its precision, as a matrix product casts them, and autocast off inside."""
    dtype = autocast_dtype(tensors[0])
    if dtype is None:
        yield tensors
        return
    with torch.autocast(tensors[0].device.type, enabled=False):
        yield tuple(tensor.to(dtype) for tensor in tensors)
