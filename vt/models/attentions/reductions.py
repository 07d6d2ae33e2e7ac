"""Key/value downsampling: attention to a few tokens made of all, so that its cost is linear in them.

Letters: N batch, P = H * W tokens, C channels, S tokens that stay, h heads, d channels of one.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d

from vt.errors import UserError
from vt.ops.maps import split_heads
from vt.registry import MODELS

from ..checks import build_part
from ..grid import Size, TokenPart, to_map, to_tokens
from .multi_head import Attention


@MODELS.register_module()
class ReducedAttention(Attention):
    """``softmax(Q K^T / sqrt(d)) V``, projected, where K and V are of downsampled tokens (PVT, section 3.3).

    Args:
        channels, num_heads, size, others: as in :class:`Attention`.
        **parts: as in :meth:`add_parts`.
    """

    def add_parts(self, channels: int, size: Size, reduce: dict, qkv_bias: bool = True) -> None:
        """Add the downsampling and the projections.

        Args:
            channels, size: as above.
            reduce: config of the downsampling, called with ``(x, size)``, such as :class:`StridedReduction`.
            qkv_bias: have biases in the projections to Q, K and V.

        Raises:
            UserError: a grid that is smaller than the downsampling needs.
        """
        self.reduce = build_part(reduce, channels=channels)
        if 0 < min(size) < (side := self.reduce.smallest_side):
            name, grid = type(self).__name__, 'x'.join(map(str, size))
            raise UserError(f'{name}: reduce needs a grid of {side} tokens on a side, and the grid has {grid}')
        self.query = nn.Linear(channels, self.inner_channels, bias=qkv_bias)
        self.key_value = nn.Linear(channels, 2 * self.inner_channels, bias=qkv_bias)

    def project(self, x: Tensor, size: Size) -> tuple[Tensor, ...]:
        """Q, ``(N, h, P, d)``, K and V, ``(N, h, S, d)``."""
        parts = self.query(x), *self.key_value(self.reduce(x, size)).chunk(2, dim=-1)
        return tuple(split_heads(part, self.num_heads) for part in parts)


@MODELS.register_module()
class StridedReduction(TokenPart):
    """One token for ``ratio x ratio``, by a strided convolution and LayerNorm (PVT, section 3.3; ResT: depthwise).

    Args:
        channels: C.
        ratio: stride; also the convolution's side, but one more where it is depthwise.
        depthwise: each channel by itself, over windows that overlap.
        eps: of the normalisation.
    """

    takes_class_tokens = False

    def __init__(self, channels: int, ratio: int, depthwise: bool = False, eps: float = 1e-5) -> None:
        super().__init__()
        self.smallest_side = 1 if depthwise else ratio
        options = dict(kernel_size=ratio + 1, padding=ratio // 2, groups=channels) if depthwise else {}
        self.convolution = nn.Conv2d(channels, channels, **dict(kernel_size=ratio, stride=ratio) | options)
        self.norm = nn.LayerNorm(channels, eps)

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, P, C)`` to ``(N, S, C)``."""
        return self.norm(to_tokens(self.convolution(to_map(x, size))))


@MODELS.register_module()
class PoolingReduction(TokenPart):
    """Averages over a fixed grid, a 1x1 convolution, LayerNorm and GELU (PVTv2's linear attention, section 3.1).

    Args:
        channels: C.
        side: of the grid; ``S = side^2``.
        eps: of the normalisation.
    """

    takes_class_tokens = False

    def __init__(self, channels: int, side: int = 7, eps: float = 1e-5) -> None:
        super().__init__()
        self.side = side
        self.convolution = nn.Conv2d(channels, channels, 1)
        self.norm = nn.LayerNorm(channels, eps)
        self.act = nn.GELU()

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, P, C)`` to ``(N, S, C)``."""
        pooled = self.convolution(adaptive_avg_pool2d(to_map(x, size), self.side))
        return self.act(self.norm(to_tokens(pooled)))


@MODELS.register_module()
class PyramidReduction(TokenPart):
    """Averages over grids of several sizes, each with what a depthwise 3x3 convolution adds (P2T, section 3.2).

    Args:
        channels: C.
        ratios: how many times smaller than the map each grid is, on each side.
        eps: of the normalisation.
    """

    takes_class_tokens = False

    def __init__(self, channels: int, ratios: list[int], eps: float = 1e-5) -> None:
        super().__init__()
        self.ratios = tuple(ratios)
        self.convolutions = nn.ModuleList(nn.Conv2d(channels, channels, 3, padding=1, groups=channels) for _ in ratios)
        self.norm = nn.LayerNorm(channels, eps)

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, P, C)`` to ``(N, S, C)``, the S of all grids together."""
        x, levels = to_map(x, size), []
        for ratio, convolve in zip(self.ratios, self.convolutions):
            pooled = adaptive_avg_pool2d(x, [max(1, round(side / ratio)) for side in size])
            levels.append(to_tokens(pooled + convolve(pooled)))
        return self.norm(torch.cat(levels, dim=1))
