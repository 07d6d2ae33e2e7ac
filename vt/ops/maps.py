"""A feature map seen as pixels, and back; pixels and tokens seen head by head.

What the operations call ``x`` is a map ``(N, C, H, W)`` or its pixels ``(N, P, C)``; what they return of its size has
its shape.

Letters: N batch, C channels, H and W map size, P pixels (H x W), h heads.
"""

from torch import Tensor


def to_pixels(x: Tensor) -> Tensor:
    """A map ``(N, C, H, W)`` as its pixels, ``(N, P, C)``, without a copy; pixels stay what they are."""
    return x if x.dim() == 3 else x.flatten(2).transpose(1, 2)


def in_shape_of(x: Tensor, pixels: Tensor) -> Tensor:
    """Pixels ``(N, P, C)`` as they are where ``x`` is pixels, as a map where ``x`` is a map."""
    return pixels if x.dim() == 3 else pixels.transpose(1, 2).reshape(x.shape)


def num_channels(x: Tensor) -> int:
    """C."""
    return x.shape[2] if x.dim() == 3 else x.shape[1]


def is_channel_major(pixels: Tensor) -> bool:
    """Whether the memory of ``(N, P, C)`` runs over the pixels first, as in a contiguous ``(N, C, H, W)`` map."""
    return pixels.stride(-1) > pixels.stride(-2)


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """``(..., P, C)`` to ``(..., h, P, C / h)``."""
    return x.unflatten(-1, (num_heads, -1)).transpose(-3, -2)


def merge_heads(x: Tensor) -> Tensor:
    """``(..., h, P, C / h)`` to ``(..., P, C)``."""
    return x.transpose(-3, -2).flatten(-2)


def scaled(x: Tensor, factor: float) -> Tensor:
    """``x * factor``; by one, ``x`` itself."""
    return x if factor == 1 else x * factor
