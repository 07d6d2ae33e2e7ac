"""Pooling of tokens over their grid: the operator P of multiscale vision transformers.

Source: Fan et al., Multiscale Vision Transformers, ICCV 2021, section 3.1. Letters: N batch, K class tokens, P and P'
tokens of the input and output grid, C channels, d channels per head. An image is a video of one frame.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, avg_pool3d, max_pool2d, max_pool3d

from vt.models.grid import Size, split_class_tokens, to_map, to_tokens
from vt.ops.depthwise import depthwise
from vt.registry import MODELS

# Kernel size as a function of the stride s (table 15); for a stride of 1 it is 1.
KERNELS = {'s': lambda s: s, 's+1': lambda s: s + 1, '2s+1': lambda s: 2 * s + 1}
POOLS = dict(max=(max_pool2d, max_pool3d), average=(avg_pool2d, avg_pool3d))


@MODELS.register_module()
class TokenPooling(nn.Module):
    """Pool the tokens of the grid; class tokens are not pooled. With kernel and stride 1 this is the identity.

    The convolution is depthwise, without bias, with one kernel for all heads; LayerNorm over the channels of a head
    follows, also for class tokens.

    Args:
        stride: stride of each side of the grid.
        kernel: kernel size per side, one number for all sides, or ``'s'``, ``'s+1'`` or ``'2s+1'`` by the stride s,
            where sides of stride 1 get a kernel of 1.
        mode: ``'convolution'``, ``'max'`` or ``'average'`` (which includes the zero padding).
        channels: d; only used by the convolution.
    """

    def __init__(
        self,
        stride: Sequence[int],
        kernel: int | str | Sequence[int] = 3,
        mode: str = 'convolution',
        channels: int | None = None,
    ) -> None:
        super().__init__()
        self.mode, self.stride, self.kernel = mode, tuple(stride), kernel_sides(kernel, stride)
        # Odd kernels are centred; even kernels are padded only as far as they exceed the stride.
        self.padding = tuple(k // 2 if k % 2 else max(0, k - s) // 2 for k, s in zip(self.kernel, self.stride))
        self.pools = math.prod(self.kernel) * math.prod(self.stride) > 1
        self.channels: Any = channels  # None without a convolution
        self.norm = nn.Identity()
        if self.pools and mode == 'convolution':
            self.weight = nn.Parameter(torch.empty(channels, 1, *self.kernel))
            nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))  # PyTorch's initialisation of convolutions
            self.norm = nn.LayerNorm(channels, eps=1e-6)

    def out_size(self, size: Size) -> Size:
        """Size of the output grid."""
        if not self.pools:
            return size
        sides = zip(size, self.padding, self.kernel, self.stride)
        return tuple((side + 2 * padding - kernel) // stride + 1 for side, padding, kernel, stride in sides)

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, K + P, C)`` to ``(N, K + P', C)``; C are the channels of one head or of several, concatenated."""
        if not self.pools:
            return x
        classes, tokens = split_class_tokens(x, size)
        if self.mode == 'convolution':
            pooled = self._convolve(tokens, size)
            pooled = torch.cat([classes, pooled], dim=1) if classes.shape[1] else pooled
            return self.norm(pooled.unflatten(-1, (-1, self.channels))).flatten(-2)
        pooled = self._pool(tokens, size)
        return torch.cat([classes, pooled], dim=1) if classes.shape[1] else pooled

    def _convolve(self, tokens: Tensor, size: Size) -> Tensor:
        def as_video(sides: Size, of_time: int) -> Size:
            return (of_time,) * (3 - len(size)) + tuple(sides)

        weight = self.weight if len(size) == 3 else self.weight[:, :, None]
        weight = weight.repeat(tokens.shape[-1] // self.channels, 1, 1, 1, 1)  # C, 1, k, k_H, k_W
        options = as_video(size, 1), as_video(self.stride, 1), as_video(self.padding, 0)
        return depthwise(tokens, weight, *options).flatten(1, 3)

    def _pool(self, tokens: Tensor, size: Size) -> Tensor:
        pool_images, pool_videos = POOLS[self.mode]
        if len(size) == 3 and self.kernel[0] == self.stride[0] == 1:  # frame by frame
            frames = tokens.reshape(-1, math.prod(size[1:]), tokens.shape[-1])
            pooled = pool_images(to_map(frames, size[1:]), self.kernel[1:], self.stride[1:], self.padding[1:])
            return to_tokens(pooled).reshape(tokens.shape[0], -1, tokens.shape[-1])
        pool = pool_videos if len(size) == 3 else pool_images
        return to_tokens(pool(to_map(tokens, size), self.kernel, self.stride, self.padding))

    def extra_repr(self) -> str:
        return f'{self.mode}, kernel={self.kernel}, stride={self.stride}' if self.pools else 'identity'


def kernel_sides(kernel: int | str | Sequence[int], stride: Sequence[int]) -> Size:
    """Return the kernel size of each side; arguments as in :class:`TokenPooling`."""
    if isinstance(kernel, str):
        return tuple(KERNELS[kernel](s) if s > 1 else 1 for s in stride)
    return (kernel,) * len(stride) if isinstance(kernel, int) else tuple(kernel)
