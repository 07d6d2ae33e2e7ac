"""A feature map seen as pixels, and back."""

from torch import Tensor


def to_pixels(x: Tensor) -> Tensor:
    """``(N, C, H, W)`` to ``(N, H * W, C)``, without a copy."""
    return x.flatten(2).transpose(1, 2)


def to_map(pixels: Tensor, size: tuple[int, int]) -> Tensor:
    """``(N, H * W, C)`` to ``(N, C, H, W)``, without a copy."""
    return pixels.transpose(1, 2).unflatten(2, size)
