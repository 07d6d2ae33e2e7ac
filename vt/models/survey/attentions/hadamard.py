"""Local attention whose weights come from elementwise products of queries and keys (ELSA).

Letters: N batch, P = H * W tokens, C channels, D channels of queries and keys, h heads, k side of the neighbourhood.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d

from vt.models.grid import Size, TokenPart, to_map, to_tokens
from vt.ops.neighbours import sum_neighbours
from vt.registry import MODELS


@MODELS.register_module()
class HadamardAttention(TokenPart):
    """Enhanced local self-attention: ``sum over k x k neighbours of (softmax(f(Q * K)) + B_c) V``, projected.

    Source: ELSA, sections 3.2 and 3.3. ``Q * K`` is the Hadamard product; f is two convolutions that turn it into the
    weights of a token's neighbours. B is the ghost head of ELSA-Swin: a k x k matrix per channel, which turns the maps
    of the h heads into one map per channel. V is padded with zeros at the border.

    Args:
        channels: C.
        num_heads: h.
        size: not used; accepted because every attention gets it.
        kernel_size: k, odd.
        group_width: channels per group of the first convolution of f, whose kernel is k x k. D is two thirds of C,
            rounded up to a multiple of it.
    """

    def __init__(
        self, channels: int, num_heads: int, size: Size = (0, 0), kernel_size: int = 7, group_width: int = 8
    ) -> None:
        super().__init__()
        groups = -(-(channels // 3 * 2) // group_width)
        inner = groups * group_width
        self.num_heads, self.kernel_size = num_heads, kernel_size
        self.widths = inner, inner, channels
        self.qkv = nn.Linear(channels, sum(self.widths))
        self.local_maps = nn.Sequential(
            nn.Conv2d(inner, inner, kernel_size, padding=kernel_size // 2, groups=groups),
            nn.GELU(),
            nn.Conv2d(inner, num_heads * kernel_size**2, 1),
        )
        kernels = channels, 1, kernel_size, kernel_size
        self.ghost_shift = nn.Parameter(0.02 * torch.randn(kernels))
        self.proj = nn.Linear(channels, channels)

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, P, C)`` to ``(N, P, C)``."""
        maps, v = self._project(x, size)
        read = sum_neighbours(maps, v).flatten(1, 2)
        # B is the same for every token: a depthwise convolution.
        read = read + conv2d(v, self.ghost_shift, padding=self.kernel_size // 2, groups=v.shape[1])
        return self.proj(to_tokens(read))

    def attention(self, x: Tensor, size: Size) -> Tensor:
        """Attention weights of each token's neighbours, row by row, without the ghost head, ``(N, h, P, k * k)``."""
        return self._project(x, size)[0].flatten(3).transpose(2, 3)

    def _project(self, x: Tensor, size: Size) -> tuple[Tensor, Tensor]:
        """Return the attention maps ``(N, h, k * k, H, W)`` and V ``(N, C, H, W)``."""
        q, k, v = to_map(self.qkv(x), size).split(self.widths, dim=1)
        return self.local_maps(q * k).unflatten(1, (self.num_heads, -1)).softmax(dim=2), v
