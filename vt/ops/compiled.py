"""Skinny matrix products of pixels and tokens on a CPU, as C++ loops generated and cached by torch.compile.

With few columns, a BLAS product uses only half of the processor's vector lanes. Written as sums over channels for each
token, it is a loop that reads each pixel once for all tokens. It needs a C++ compiler, and half a minute at first use,
so it is off by default; ``speed.compile_pixels`` switches it on.

Letters: N batch, P pixels, C channels, L tokens.
"""

import functools
from collections.abc import Callable

import torch
from torch import Tensor

_is_on = False


def compile_pixels(on: bool = True) -> None:
    """Switch the compiled products of :mod:`vt.ops.fused` on or off for this process."""
    global _is_on
    _is_on = on


def is_on() -> bool:
    """Whether compiled products are switched on."""
    return _is_on


def compiles(*pixels: Tensor) -> bool:
    """Whether compiled products are on and support these pixels ``(N, P, C)``: float32, CPU, channels contiguous."""
    return (
        _is_on
        and not torch.compiler.is_compiling()
        and not torch.jit.is_tracing()
        and all(x.device.type == 'cpu' and x.dtype == torch.float32 and x.stride(-1) == 1 for x in pixels)
    )


def logits(pixels: Tensor, rows: Tensor) -> Tensor:
    """Return the products ``(N, L, P)`` of pixels ``(N, P, C)`` and rows ``(L, C)`` or ``(N, L, C)``."""
    return _compiled(_logits)(pixels, rows.expand(pixels.shape[0], -1, -1))


def add_products(weights: Tensor, rows: Tensor, onto: Tensor, out: Tensor) -> None:
    """Write ``onto + weights^T rows`` into ``out``, both ``(N, P, C)``; weights ``(N, L, P)``, rows ``(N, L, C)``."""
    _compiled(_add_products)(weights, rows, onto, out)


def _logits(pixels: Tensor, rows: Tensor) -> Tensor:
    return torch.stack([(pixels * row.unsqueeze(1)).sum(-1) for row in rows.unbind(1)], dim=1)


def _add_products(weights: Tensor, rows: Tensor, onto: Tensor, out: Tensor) -> None:
    for weight, row in zip(weights.unbind(1), rows.unbind(1)):
        onto = onto + weight.unsqueeze(-1) * row.unsqueeze(1)
    out.copy_(onto)


@functools.cache
def _compiled(function: Callable[..., Tensor | None]) -> Callable[..., Tensor | None]:
    return torch.compile(function)
