"""Attentions that differ from the common one: cosines, several side by side, heads that are mixed.

Letters: N batch, C channels, D inner channels, h heads, T tokens that attend, S tokens that are attended to.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, normalize

from vt.errors import UserError
from vt.ops.maps import split_heads
from vt.registry import MODELS

from ..checks import require_divisible
from ..grid import Size, TokenPart
from .multi_head import Attention


@MODELS.register_module()
class CosineAttention(Attention):
    """Attention whose logits are cosines, times a learned scale of each head (Swin v2, section 3.2).

    Keys have no bias. Args: as in :class:`Attention`, without ``reduce``.
    """

    def __init__(self, channels: int, num_heads: int, qkv_bias: bool = True, **kwargs) -> None:
        if kwargs.get('reduce'):
            raise UserError('CosineAttention: it has no reduced keys; leave out reduce')
        super().__init__(channels, num_heads, qkv_bias=False, **kwargs)
        self.scale = 1.0
        self.log_scale = nn.Parameter(torch.full((num_heads, 1, 1), 10.0).log())
        inner = self.qkv.out_features // 3
        self.query_bias, self.value_bias = (nn.Parameter(torch.zeros(inner)) if qkv_bias else None for _ in range(2))

    def project(self, x: Tensor, size: Size) -> tuple[Tensor, ...]:
        bias = None
        if self.query_bias is not None:
            bias = torch.cat([self.query_bias, torch.zeros_like(self.query_bias), self.value_bias])  # 3 D
        qkv = linear(self.windows.partition(x, size), self.qkv.weight, bias).chunk(3, dim=-1)
        q, k, v = (split_heads(part, self.num_heads) for part in qkv)  # W, h, T, d
        return normalize(q, dim=-1) * self.log_scale.clamp(max=math.log(100)).exp(), normalize(k, dim=-1), v


@MODELS.register_module()
class ParallelAttention(TokenPart):
    """Attentions beside each other, each with its share of the channels, projected together (CSWin, section 3.2).

    Args:
        channels: C.
        num_heads: of all of them together.
        size: the grid's in training.
        branches: what tells the attentions apart, options of :class:`Attention`.
        **shared: what they have in common.

    Raises:
        UserError: the number of branches does not divide the heads or the channels.
    """

    def __init__(self, channels: int, num_heads: int, branches: list[dict], size: Size = (0, 0), **shared) -> None:
        super().__init__()
        require_divisible('ParallelAttention', 'num_heads', num_heads, 'branches', len(branches))
        require_divisible('ParallelAttention', 'channels', channels, 'branches', len(branches))
        share = dict(inner_channels=channels // len(branches), num_heads=num_heads // len(branches), project=False)
        self.branches = nn.ModuleList(Attention(channels, size=size, **share | shared | own) for own in branches)
        self.proj = nn.Linear(channels, channels)

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, P, C)`` to ``(N, P, C)``."""
        return self.proj(torch.cat([branch(x, size) for branch in self.branches], dim=-1))


@MODELS.register_module()
class HeadMixing(nn.Sequential):
    """A 1x1 convolution over the heads of maps or logits (talking heads, re-attention), a normalisation, or both.

    Args:
        num_heads: h.
        convolve: have the convolution.
        norm: class of the normalisation, ``'BatchNorm2d'`` or ``'InstanceNorm2d'``; none by default.
        gain: a fixed factor on the result.
    """

    def __init__(self, num_heads: int, convolve: bool = True, norm: str | None = None, gain: float = 1.0) -> None:
        layers = [nn.Conv2d(num_heads, num_heads, 1)] if convolve else []
        layers += [dict(BatchNorm2d=nn.BatchNorm2d, InstanceNorm2d=nn.InstanceNorm2d)[norm](num_heads)] if norm else []
        super().__init__(*layers)
        self.gain = gain

    def forward(self, x: Tensor) -> Tensor:
        """``(N, h, T, S)`` to ``(N, h, T, S)``."""
        return super().forward(x) if self.gain == 1 else self.gain * super().forward(x)
