"""Views of feature maps as pixels, and of pixels and tokens by head.

``x`` is a map ``(N, C, H, W)`` or its pixels ``(N, P, C)``; outputs of the same size have its shape.

Letters: N batch, C channels, H and W map size, P pixels (H x W), h heads.
"""

from collections.abc import Sequence

from torch import Tensor

Levels = Sequence[Tensor]  # maps or pixels of several sizes
Gradients = tuple[Tensor | None, ...]  # None for what needs none


def to_pixels(x: Tensor) -> Tensor:
    """View a map ``(N, C, H, W)`` as pixels ``(N, P, C)``; pixels are returned unchanged."""
    return x if x.dim() == 3 else x.flatten(2).transpose(1, 2)


def in_shape_of(x: Tensor, pixels: Tensor) -> Tensor:
    """Return pixels ``(N, P, C)`` in the shape of ``x``, a map or pixels."""
    return pixels if x.dim() == 3 else pixels.transpose(1, 2).reshape(x.shape)


def num_channels(x: Tensor) -> int:
    """Number of channels C of a map or of pixels."""
    return x.shape[2] if x.dim() == 3 else x.shape[1]


def is_channel_major(pixels: Tensor) -> bool:
    """Whether pixels ``(N, P, C)`` are stored channel by channel, as in a contiguous map ``(N, C, H, W)``."""
    return pixels.stride(-1) > pixels.stride(-2)


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """``(..., P, C)`` to ``(..., h, P, C / h)``."""
    return x.unflatten(-1, (num_heads, -1)).transpose(-3, -2)


def merge_heads(x: Tensor) -> Tensor:
    """``(..., h, P, C / h)`` to ``(..., P, C)``."""
    return x.transpose(-3, -2).flatten(-2)


def heads_in_batch(x: Tensor, num_heads: int) -> Tensor:
    """``(N, P, C)`` to ``(N h, P, C / h)``."""
    return x if num_heads == 1 else split_heads(x, num_heads).flatten(0, 1)


def scaled(x: Tensor, factor: float) -> Tensor:
    """Return ``x * factor``, or ``x`` itself if the factor is 1."""
    return x if factor == 1 else x * factor
