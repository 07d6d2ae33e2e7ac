"""Local attention whose maps come from products of queries and keys of the same token.

Letters: N batch, P = H * W tokens, C channels, D channels of queries and keys, h heads, k side of the neighbourhood.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, pad

from vt.errors import UserError
from vt.registry import MODELS

from ..checks import require_divisible
from ..grid import Size, TokenPart, to_map, to_tokens


@MODELS.register_module()
class HadamardAttention(TokenPart):
    """``sum over the k x k neighbours of (S_c softmax(f(Q * K)) + B_c) V``, projected (ELSA, sections 3.2 and 3.3).

    ``Q * K`` is Hadamard's product: f, two convolutions, makes a token's map of it. S and B are the ghost head, a
    matrix of k x k for each channel, which makes of the heads' few maps one for each channel. Beyond the border V is 0.

    Args:
        channels: C.
        num_heads: h.
        size: not used; every attention is told it.
        kernel_size: k.
        qk_channels: D; two thirds of C by default. It is rounded up to whole groups.
        group_width: channels of a group in the first of the two convolutions, whose side is k, too.
        qkv_bias: have biases in the projections to Q, K and V.
        ghost_scale, ghost_shift: have S, and have B.

    Raises:
        UserError: ``num_heads`` does not divide C; an even k.
    """

    takes_class_tokens = False

    def __init__(
        self,
        channels: int,
        num_heads: int,
        size: Size = (0, 0),
        kernel_size: int = 7,
        qk_channels: int | None = None,
        group_width: int = 8,
        qkv_bias: bool = True,
        ghost_scale: bool = True,
        ghost_shift: bool = True,
    ) -> None:
        super().__init__()
        require_divisible('HadamardAttention', 'channels', channels, 'num_heads', num_heads)
        if kernel_size % 2 == 0:
            raise UserError(f'HadamardAttention: kernel_size={kernel_size} is even and has no middle; take an odd one')
        groups = -(-(qk_channels or channels // 3 * 2) // group_width)
        inner = groups * group_width
        self.num_heads, self.kernel_size = num_heads, kernel_size
        self.widths = inner, inner, channels
        self.qkv = nn.Linear(channels, sum(self.widths), bias=qkv_bias)
        self.local_maps = nn.Sequential(
            nn.Conv2d(inner, inner, kernel_size, padding=kernel_size // 2, groups=groups),
            nn.GELU(),
            nn.Conv2d(inner, num_heads * kernel_size**2, 1),
        )
        kernels = channels, 1, kernel_size, kernel_size
        self.ghost_scale = nn.Parameter(torch.randn(kernels)) if ghost_scale else None
        self.ghost_shift = nn.Parameter(0.02 * torch.randn(kernels)) if ghost_shift else None
        self.proj = nn.Linear(channels, channels)

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, P, C)`` to ``(N, P, C)``."""
        maps, v = self._project(x, size)
        around = pad(v, [self.kernel_size // 2] * 4).unflatten(1, (self.num_heads, -1))  # N, h, C / h, H + k - 1, ...
        read = 0.0 if self.ghost_shift is None else self._shifted(v)
        for place, weights in enumerate(maps.unbind(2)):  # neighbour by neighbour: nothing is materialised k * k times
            i, j = divmod(place, self.kernel_size)
            seen = around[..., i : i + size[0], j : j + size[1]]
            if self.ghost_scale is not None:
                seen = seen * self.ghost_scale[:, 0, i, j].reshape(self.num_heads, -1, 1, 1)
            read = read + weights.unsqueeze(2) * seen
        return self.proj(to_tokens(read.flatten(1, 2)))

    def attention(self, x: Tensor, size: Size) -> Tensor:
        """How much each token takes from its neighbours, row by row, without the ghost head, ``(N, h, P, k * k)``."""
        return self._project(x, size)[0].flatten(3).transpose(2, 3)

    def _project(self, x: Tensor, size: Size) -> tuple[Tensor, Tensor]:
        """Maps ``(N, h, k * k, H, W)``, and V ``(N, C, H, W)``."""
        q, k, v = to_map(self.qkv(x), size).split(self.widths, dim=1)
        return self.local_maps(q * k).unflatten(1, (self.num_heads, -1)).softmax(dim=2), v

    def _shifted(self, v: Tensor) -> Tensor:
        """What B reads, the same for every token: a depthwise convolution."""
        read = conv2d(v, self.ghost_shift, padding=self.kernel_size // 2, groups=v.shape[1])
        return read.unflatten(1, (self.num_heads, -1))
