"""Where pixels meet a few tokens on a CPU: loops that torch.compile writes in C++ and keeps in its cache.

A product of few columns leaves half of a processor's vectors empty in a library of products. As a sum over channels for
each token it is a loop that reads a pixel once for all of them. That takes a C++ compiler on the machine, and half a
minute at its first use, so it is off unless asked for: ``speed.compile_pixels``.

Letters: N batch, P pixels, C channels, L tokens.
"""

import functools
from collections.abc import Callable

import torch
from torch import Tensor

_is_on = False


def compile_pixels(on: bool = True) -> None:
    """Choose for this process whether :mod:`vt.ops.fused` takes its skinny products from here."""
    global _is_on
    _is_on = on


def compiles(*pixels: Tensor) -> bool:
    """Whether that is chosen, and pixels ``(N, P, C)`` lie pixel by pixel in memory, in float32 on a CPU."""
    return (
        _is_on
        and not torch.compiler.is_compiling()
        and not torch.jit.is_tracing()
        and all(x.device.type == 'cpu' and x.dtype == torch.float32 and x.stride(-1) == 1 for x in pixels)
    )


def logits(pixels: Tensor, rows: Tensor) -> Tensor:
    """Products of each pixel ``(N, P, C)`` and each row ``(L, C)`` or ``(N, L, C)``, ``(N, L, P)``."""
    return _compiled(_logits)(pixels, rows.expand(pixels.shape[0], -1, -1))


def add_products(weights: Tensor, rows: Tensor, onto: Tensor, out: Tensor) -> None:
    """Weighted sums of rows, ``(N, L, P)`` and ``(N, L, C)``, and ``onto``, ``(N, P, C)``, written into ``out``."""
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
