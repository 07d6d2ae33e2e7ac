"""A feature map seen as pixels, and back.

Letters: N batch, C channels, H and W map size, P pixels (H x W).
"""

from torch import Tensor


def to_pixels(x: Tensor) -> Tensor:
    """A map ``(N, C, H, W)`` as its pixels, ``(N, P, C)``, without a copy; pixels stay what they are."""
    return x if x.dim() == 3 else x.flatten(2).transpose(1, 2)


def to_map(pixels: Tensor, size: tuple[int, int]) -> Tensor:
    """``(N, H * W, C)`` to ``(N, C, H, W)``, without a copy."""
    return pixels.transpose(1, 2).unflatten(2, size)


def in_shape_of(x: Tensor, pixels: Tensor) -> Tensor:
    """Pixels ``(N, P, C)`` as they are where ``x`` is pixels, as a map where ``x`` is a map."""
    return pixels if x.dim() == 3 else to_map(pixels, x.shape[-2:]).reshape(x.shape)
