"""The one place that chooses how tokenize and project are computed.

Every path has these three functions. ``x`` is a map ``(N, C, H, W)`` or its pixels ``(N, P, C)``; results as large as
``x`` have its shape.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import Tensor

from vt.errors import UserError

from . import fused, plain, sdpa, triton_path
from .precision import cast_as_product, has_autocast, without_autocast
from .triton_check import is_trusted

_PATHS = {'plain': plain, 'fused': fused, 'sdpa': sdpa, 'triton': triton_path}
_forced: str | None = None


def current_path(x: Tensor, num_tokens: int = 1, num_heads: int = 1) -> str:
    """Name of the path that computes on ``x``: the forced one, else the fastest that can on its device.

    - ``'triton'``, our own kernels: bf16 or fp16 in channels_last on an NVIDIA GPU, where Triton is there, the sizes
      suit them and a trial on small maps came out right.
    - ``'fused'``, matrix products and gradients by hand: a CPU, and whatever else.
    - ``'plain'``, the equations: while a tracer follows, who sees only PyTorch's own operators.

    ``'sdpa'``, PyTorch's own attention, is taken where it is forced alone: nothing shows that it is faster anywhere.

    Args:
        x: X, a map ``(N, C, H, W)`` or pixels ``(N, P, C)``, in the precision that is computed in.
        num_tokens: L.
        num_heads: heads of the attention.

    Raises:
        UserError: the kernels are forced on what they don't take.
    """
    if _forced == 'triton' and not triton_path.supports(x, num_tokens, num_heads):
        raise UserError(
            f'the Triton kernels do not take {num_heads} heads and {num_tokens} tokens on {tuple(x.shape)}, {x.dtype}, '
            f'{x.device.type}: see vt.ops.triton_path.supports, or take another path'
        )
    if _forced:
        return _forced
    if torch.jit.is_tracing():
        return 'plain'
    if triton_path.supports(x, num_tokens, num_heads) and is_trusted(x, num_tokens):
        return 'triton'
    return 'fused'


@contextmanager
def use_path(name: str) -> Iterator[None]:
    """Force one path, ``'plain'``, ``'fused'``, ``'sdpa'`` or ``'triton'``, inside a ``with`` block.

    Raises:
        UserError: no path has this name.
    """
    global _forced
    if name not in _PATHS:
        raise UserError(f'vt.ops has no path {name!r}: choose one of {", ".join(_PATHS)}')
    previous, _forced = _forced, name
    try:
        yield
    finally:
        _forced = previous


def tokenize(x: Tensor, queries: Tensor, num_heads: int = 1, scale: float = 1.0) -> Tensor:
    """Group pixels into tokens ``(N, L, C)``; see :func:`vt.ops.plain.tokenize`."""
    x, queries = cast_as_product(x, queries)
    name = current_path(x, queries.shape[-2], num_heads)
    with _as_cast(name, x):
        return _PATHS[name].tokenize(x, queries, num_heads, scale)


def project(x: Tensor, keys: Tensor, values: Tensor, scale: float = 1.0) -> Tensor:
    """What the pixels read from the tokens; see :func:`vt.ops.plain.project`."""
    x, keys, values = cast_as_product(x, keys, values)
    name = current_path(x, keys.shape[2], keys.shape[1])
    with _as_cast(name, x):
        return _PATHS[name].project(x, keys, values, scale)


def project_onto(x: Tensor, keys: Tensor, values: Tensor, scale: float = 1.0) -> Tensor:
    """The pixels plus what they read; see :func:`vt.ops.plain.project_onto`."""
    x, keys, values = cast_as_product(x, keys, values)
    name = current_path(x, keys.shape[2], keys.shape[1])
    with _as_cast(name, x):
        return _PATHS[name].project_onto(x, keys, values, scale)


def _as_cast(name: str, x: Tensor) -> AbstractContextManager:
    """A context in which a path computes in the precision of its operands; the kernels do so by themselves."""
    device = x.device.type
    return without_autocast(device) if name != 'triton' and has_autocast(device) else nullcontext()
