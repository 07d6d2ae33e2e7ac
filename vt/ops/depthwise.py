"""Depthwise convolution of tokens on a grid of frames, as a sum of convolutions of single frames.

PyTorch has fast depthwise kernels for images only: on a CPU, 3D convolutions take 3 to 50 times as long as this sum.
Strided convolutions in bfloat16 on a CPU are trained in float32, because in bfloat16 they take 3 to 12 times as long.

Letters: N batch, C channels, T, H and W size of the grid, k taps of the kernel in time.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import conv2d

from .precision import trains_in_bfloat16_on_cpu

Size3 = tuple[int, int, int]


def depthwise(tokens: Tensor, weight: Tensor, size: Size3, stride: Size3, padding: Size3) -> Tensor:
    """Apply a depthwise 3D convolution; an image is a video of one frame.

    Args:
        tokens: ``(N, T * H * W, C)``.
        weight: kernels, ``(C, 1, k, k_H, k_W)``.
        size: T, H and W.
        stride: in time, height and width.
        padding: zero padding in time, height and width.

    Returns:
        The output map, ``(N, T', H', W', C)``.
    """
    n, taps, step = tokens.shape[0], weight.shape[2], stride[0]
    frames = tokens.contiguous().unflatten(1, size)  # N, T, H, W, C
    length = (size[0] + 2 * padding[0] - taps) // step + 1  # T'
    out: Any = None
    for tap in sorted(range(taps), key=lambda tap: abs(tap - padding[0])):  # first the tap that covers all T' outputs
        phase = (tap - padding[0]) % step
        seen = frames[:, phase::step]
        if not seen.shape[1]:
            continue
        images = seen.reshape(-1, *seen.shape[2:]).permute(0, 3, 1, 2)  # N * T_seen, C, H, W; channels last in memory
        part = _convolve(images, weight[:, :, tap], stride[1:], padding[1:])
        part = part.permute(0, 2, 3, 1).unflatten(0, (n, -1))  # N, T_seen, H', W', C
        ahead = (tap - padding[0] - phase) // step  # output t reads input t + ahead
        first, last = max(0, -ahead), min(length, part.shape[1] - ahead)
        if out is None:
            out = part[:, :length]
        elif first < last:
            out[:, first:last] += part[:, first + ahead : last + ahead]
    return out


def _convolve(images: Tensor, weight: Tensor, stride: tuple[int, int], padding: tuple[int, int]) -> Tensor:
    """Depthwise convolution of images ``(N, C, H, W)`` with kernels ``(C, 1, k_H, k_W)``."""
    if max(stride) == 1 or not trains_in_bfloat16_on_cpu(images):
        return conv2d(images, weight, None, stride, padding, 1, len(weight))
    with torch.autocast('cpu', enabled=False):
        return conv2d(images.float(), weight.float(), None, stride, padding, 1, len(weight)).to(images.dtype)
