"""Attention with key/value downsampling, which makes it cheaper on large grids.

Letters: N batch, P = H * W tokens, C channels, S tokens after downsampling, h heads, d channels per head.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d

from vt.models.checks import build_part
from vt.models.grid import Size, TokenPart, to_map, to_tokens
from vt.ops.maps import split_heads
from vt.registry import MODELS

from .multi_head import Attention


@MODELS.register_module()
class ReducedAttention(Attention):
    """Attention whose K and V come from downsampled tokens (PVT, section 3.3).

    Args:
        channels: C.
        num_heads: h.
        reduce: config of the downsampling, called with ``(x, size)``, such as :class:`StridedReduction`.
        size, inner_channels, project, proj_dropout: options of :class:`Attention`, with the same defaults.
    """

    def add_parts(self, channels: int, size: Size, reduce: dict) -> None:
        """Create the downsampling and the projections."""
        self.reduce = build_part(reduce, channels=channels)
        self.query = nn.Linear(channels, self.inner_channels)
        self.key_value = nn.Linear(channels, 2 * self.inner_channels)

    def project(self, x: Tensor, size: Size) -> tuple[Tensor, ...]:
        """Return Q ``(N, h, P, d)`` and K and V ``(N, h, S, d)``."""
        parts = self.query(x), *self.key_value(self.reduce(x, size)).chunk(2, dim=-1)
        return tuple(split_heads(part, self.num_heads) for part in parts)


@MODELS.register_module()
class StridedReduction(TokenPart):
    """Downsample by a strided convolution and LayerNorm (PVT, section 3.3; depthwise in ResT).

    Args:
        channels: C.
        ratio: stride. The kernel is ``ratio x ratio``, or one larger with ``depthwise``.
        depthwise: use a depthwise convolution with overlapping windows.
    """

    def __init__(self, channels: int, ratio: int, depthwise: bool = False) -> None:
        super().__init__()
        options = dict(kernel_size=ratio + 1, padding=ratio // 2, groups=channels) if depthwise else {}
        self.convolution = nn.Conv2d(channels, channels, **dict(kernel_size=ratio, stride=ratio) | options)
        self.norm = nn.LayerNorm(channels)

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, P, C)`` to ``(N, S, C)``."""
        return self.norm(to_tokens(self.convolution(to_map(x, size))))


@MODELS.register_module()
class PoolingReduction(TokenPart):
    """Average pooling to a fixed grid, then a 1x1 convolution, LayerNorm and GELU (PVTv2-Li, section 3.1).

    Args:
        channels: C.
        side: side of the pooled grid; ``S = side^2``.
    """

    def __init__(self, channels: int, side: int = 7) -> None:
        super().__init__()
        self.side = side
        self.convolution = nn.Conv2d(channels, channels, 1)
        self.norm = nn.LayerNorm(channels)
        self.act = nn.GELU()

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, P, C)`` to ``(N, S, C)``."""
        pooled = self.convolution(adaptive_avg_pool2d(to_map(x, size), self.side))
        return self.act(self.norm(to_tokens(pooled)))


@MODELS.register_module()
class PyramidReduction(TokenPart):
    """Pyramid pooling: average pooling to several grids, each plus its depthwise 3x3 convolution (P2T, section 3.2).

    Args:
        channels: C.
        ratios: downsampling factor of each pooled grid, per side.
    """

    def __init__(self, channels: int, ratios: list[int]) -> None:
        super().__init__()
        self.ratios = tuple(ratios)
        self.convolutions = nn.ModuleList(nn.Conv2d(channels, channels, 3, padding=1, groups=channels) for _ in ratios)
        self.norm = nn.LayerNorm(channels)

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, P, C)`` to ``(N, S, C)``; S counts the tokens of all pooled grids."""
        x, levels = to_map(x, size), []
        for ratio, convolve in zip(self.ratios, self.convolutions):
            pooled = adaptive_avg_pool2d(x, [max(1, round(side / ratio)) for side in size])
            levels.append(to_tokens(pooled + convolve(pooled)))
        return self.norm(torch.cat(levels, dim=1))
