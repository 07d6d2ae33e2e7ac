"""Attention in windows: Swin's, Swin v2's of cosines, CSWin's of stripes side by side.

Letters: N batch, P tokens of the grid, C channels, D inner channels, h heads, d = D / h, W windows of all images, W_n
of one, T tokens of a window.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, normalize

from vt.ops.maps import merge_heads, split_heads
from vt.registry import MODELS

from ..checks import build_part, require_divisible, require_with
from ..grid import Size, TokenPart
from .masks import MaskedAttention


@MODELS.register_module()
class WindowAttention(MaskedAttention):
    """``softmax(Q K^T / sqrt(d) + B) V`` in each window, projected (Swin, section 3.2).

    Args:
        channels, num_heads, size, others: as in :class:`Attention`.
        **parts: as in :meth:`add_parts`.
    """

    takes_class_tokens = False

    def add_parts(
        self,
        channels: int,
        size: Size,
        windows: dict | None = None,
        bias: dict | None = None,
        local: dict | None = None,
        local_in_windows: bool = False,
        **parts,
    ) -> None:
        """Add the windows, and what is added in them.

        Args:
            channels, size: as above.
            windows: config of windows, outside of which a token sees nothing; the whole grid by default.
            bias: config of B, by offset in a window, such as :class:`vt.models.RelativePositionBias`; none by default.
            local: config of a token part that adds to the result what it makes of V (CSWin's LePE).
            local_in_windows: that part sees each window by itself instead of the grid.
            **parts: as in :meth:`Attention.add_parts`.

        Raises:
            UserError: windows that do not fit ``size``; ``local_in_windows`` without a local part or windows.
        """
        require_with(type(self).__name__, 'local_in_windows', local_in_windows, windows=windows, local=local)
        self.windows = MODELS.build(windows or dict(type='vt.Windows', window=None), default_args=dict(size=size))
        super().add_parts(channels, size, **parts)
        options = dict(num_heads=self.num_heads, window=self.windows.sides(size))
        self.bias = MODELS.build(bias, default_args=options) if bias else None
        self.local = build_part(local, channels=self.inner_channels) if local else None
        self.local_in_windows = local_in_windows

    def project(self, x: Tensor, size: Size) -> tuple[Tensor, ...]:
        """Q, K and V of the windows, ``(W, h, T, d)`` each."""
        return super().project(self.windows.partition(x, size), size)

    def mask(self, q: Tensor, size: Size) -> Tensor | None:
        """B and what a shift keeps apart, ``(1, h, T, T)`` or ``(W_n, h, T, T)``."""
        shifted = self.windows.mask_of(size, q)  # W_n, 1, T, T
        if self.bias is None:
            return shifted
        bias = self.bias(self.windows.sides(size))[None]  # 1, h, T, T
        return bias if shifted is None else shifted + bias

    def gather(self, read: Tensor, v: Tensor, size: Size) -> Tensor:
        """What was read, ``(W, T, D)``, back in the grid, with what the local part makes of V, ``(N, P, D)``."""
        if self.local is None:
            return self.windows.reverse(read, size)
        v = merge_heads(v)  # W, T, D
        if self.local_in_windows:
            return self.windows.reverse(read + self.local(v, self.windows.sides(size)), size)
        return self.windows.reverse(read, size) + self.local(self.windows.reverse(v, size), size)


@MODELS.register_module()
class CosineAttention(WindowAttention):
    """Attention whose logits are cosines, times a learned scale of each head (Swin v2, section 3.2).

    Keys have no bias. Args: as in :class:`WindowAttention`.
    """

    def add_parts(self, channels: int, size: Size, qkv_bias: bool = True, **parts) -> None:
        super().add_parts(channels, size, qkv_bias=False, **parts)
        self.scale = 1.0
        self.log_scale = nn.Parameter(torch.full((self.num_heads, 1, 1), 10.0).log())
        self.query_bias, self.value_bias = (
            nn.Parameter(torch.zeros(self.inner_channels)) if qkv_bias else None for _ in range(2)
        )

    def project(self, x: Tensor, size: Size) -> tuple[Tensor, ...]:
        bias = None
        if self.query_bias is not None:
            bias = torch.cat([self.query_bias, torch.zeros_like(self.query_bias), self.value_bias])  # 3 D
        qkv = linear(self.windows.partition(x, size), self.qkv.weight, bias).chunk(3, dim=-1)
        q, k, v = (split_heads(part, self.num_heads) for part in qkv)  # W, h, T, d
        return normalize(q, dim=-1) * self.log_scale.clamp(max=math.log(100)).exp(), normalize(k, dim=-1), v


@MODELS.register_module()
class StripeAttention(WindowAttention):
    """Attention whose windows are padded behind the projection, so that padding is zero in Q, K and V (CSWin's code).

    Args: as in :class:`WindowAttention`.
    """

    def project(self, x: Tensor, size: Size) -> tuple[Tensor, ...]:
        qkv = self.windows.partition(self.qkv(x), size).chunk(3, dim=-1)  # W, T, D each
        return tuple(split_heads(part, self.num_heads) for part in qkv)


@MODELS.register_module()
class ParallelAttention(TokenPart):
    """Attentions beside each other, each with its share of the channels, projected together (CSWin, section 3.2).

    Args:
        channels: C.
        num_heads: of all of them together.
        size: the grid's in training.
        branches: what tells the attentions apart, options of :class:`StripeAttention`.
        **shared: what they have in common.

    Raises:
        UserError: the number of branches does not divide the heads or the channels.
    """

    def __init__(self, channels: int, num_heads: int, branches: list[dict], size: Size = (0, 0), **shared) -> None:
        super().__init__()
        require_divisible('ParallelAttention', 'num_heads', num_heads, 'branches', len(branches))
        require_divisible('ParallelAttention', 'channels', channels, 'branches', len(branches))
        share = dict(inner_channels=channels // len(branches), num_heads=num_heads // len(branches), project=False)
        self.branches = nn.ModuleList(StripeAttention(channels, size=size, **share | shared | own) for own in branches)
        self.proj = nn.Linear(channels, channels)

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, P, C)`` to ``(N, P, C)``."""
        return self.proj(torch.cat([branch(x, size) for branch in self.branches], dim=-1))
