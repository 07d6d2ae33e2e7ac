"""Window attention: Swin, Swin v2 with cosine logits, CSWin with parallel stripes.

Letters: N batch, P tokens of the grid, C channels, D inner channels, h heads, d = D / h, W windows of all images, W_n
windows of one image, T tokens of a window.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, normalize

from vt.models.checks import build_part, require_divisible
from vt.models.grid import Size, TokenPart
from vt.ops.maps import merge_heads, split_heads
from vt.registry import MODELS

from .multi_head import MaskedAttention


@MODELS.register_module()
class WindowAttention(MaskedAttention):
    """Window attention: ``softmax(Q K^T / sqrt(d) + B) V`` within each window, projected (Swin, section 3.2).

    Args:
        channels: C.
        num_heads: h.
        size: grid size (H, W) during training.
        windows: config of the windows, such as :class:`Windows`; one window, the whole grid, by default.
        bias: config of B by relative position, such as :class:`vt.models.RelativePositionBias`; none by default.
        local: config of a token part that is applied to V and added to the output; none by default.
        inner_channels, project, proj_dropout, qkv_bias: options of :class:`Attention`, with the same defaults.

    Raises:
        UserError: the windows do not fit ``size``.
    """

    def add_parts(
        self,
        channels: int,
        size: Size,
        windows: dict | None = None,
        bias: dict | None = None,
        local: dict | None = None,
        **parts,
    ) -> None:
        """Create the windows, the bias, the local part, and the parts of :class:`Attention`."""
        self.windows = MODELS.build(windows or dict(type='vt.Windows', window=None), default_args=dict(size=size))
        super().add_parts(channels, size, **parts)
        options = dict(num_heads=self.num_heads, window=self.windows.sides(size))
        self.bias = MODELS.build(bias, default_args=options) if bias else None
        self.local = build_part(local, channels=self.inner_channels) if local else None

    def project(self, x: Tensor, size: Size) -> tuple[Tensor, ...]:
        """Return Q, K and V of the windows, ``(W, h, T, d)`` each."""
        return super().project(self.windows.partition(x, size), size)

    def mask(self, q: Tensor, size: Size) -> Tensor | None:
        """Return B plus the mask of shifted windows, ``(1, h, T, T)`` or ``(W_n, h, T, T)``."""
        shifted = self.windows.mask_of(size, q)  # W_n, 1, T, T
        if self.bias is None:
            return shifted
        bias = self.bias(self.windows.sides(size))[None]  # 1, h, T, T
        return bias if shifted is None else shifted + bias

    def gather(self, read: Tensor, v: Tensor, size: Size) -> Tensor:
        """Return the windows ``(W, T, D)`` to the grid ``(N, P, D)``, and add the local part of V."""
        if self.local is None:
            return self.windows.reverse(read, size)
        return self.windows.reverse(read, size) + self.local(self.windows.reverse(merge_heads(v), size), size)


@MODELS.register_module()
class CosineAttention(WindowAttention):
    """Window attention with cosine logits and a learned scale per head (Swin v2, section 3.2).

    The projection to K has no bias.

    Args:
        channels: C.
        num_heads: h.
        size, windows, bias, local, inner_channels, project, proj_dropout: options of :class:`WindowAttention`, with the
            same defaults.
    """

    def add_parts(self, channels: int, size: Size, **parts) -> None:
        super().add_parts(channels, size, qkv_bias=False, **parts)
        self.scale = 1.0
        self.log_scale = nn.Parameter(torch.full((self.num_heads, 1, 1), 10.0).log())
        self.query_bias, self.value_bias = (nn.Parameter(torch.zeros(self.inner_channels)) for _ in range(2))

    def project(self, x: Tensor, size: Size) -> tuple[Tensor, ...]:
        bias = torch.cat([self.query_bias, torch.zeros_like(self.query_bias), self.value_bias])  # 3 D
        qkv = linear(self.windows.partition(x, size), self.qkv.weight, bias).chunk(3, dim=-1)
        q, k, v = (split_heads(part, self.num_heads) for part in qkv)  # W, h, T, d
        return normalize(q, dim=-1) * self.log_scale.clamp(max=math.log(100)).exp(), normalize(k, dim=-1), v


@MODELS.register_module()
class StripeAttention(WindowAttention):
    """Window attention that pads after the projection, so that padding is zero in Q, K and V (CSWin's code).

    Args:
        channels: C.
        num_heads: h.
        local: config of a token part that is applied to V of each window (LePE of CSWin); none by default.
        size, windows, bias, inner_channels, project, proj_dropout, qkv_bias: options of :class:`WindowAttention`, with
            the same defaults.
    """

    def project(self, x: Tensor, size: Size) -> tuple[Tensor, ...]:
        qkv = self.windows.partition(self.qkv(x), size).chunk(3, dim=-1)  # W, T, D each
        return tuple(split_heads(part, self.num_heads) for part in qkv)

    def gather(self, read: Tensor, v: Tensor, size: Size) -> Tensor:
        if self.local is not None:
            read = read + self.local(merge_heads(v), self.windows.sides(size))
        return self.windows.reverse(read, size)


@MODELS.register_module()
class ParallelAttention(TokenPart):
    """Parallel attentions on equal shares of the channels, concatenated and projected (CSWin, section 3.2).

    Args:
        channels: C.
        num_heads: total number of heads.
        branches: options of :class:`StripeAttention` for each branch, which override ``shared``.
        size: grid size during training.
        **shared: options of :class:`StripeAttention` for all branches.

    Raises:
        UserError: the number of branches does not divide the heads.
    """

    def __init__(self, channels: int, num_heads: int, branches: list[dict], size: Size = (0, 0), **shared) -> None:
        super().__init__()
        require_divisible('ParallelAttention', 'num_heads', num_heads, 'branches', len(branches))
        share = dict(inner_channels=channels // len(branches), num_heads=num_heads // len(branches), project=False)
        self.branches = nn.ModuleList(StripeAttention(channels, size=size, **share | shared | own) for own in branches)
        self.proj = nn.Linear(channels, channels)

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, P, C)`` to ``(N, P, C)``."""
        return self.proj(torch.cat([branch(x, size) for branch in self.branches], dim=-1))
