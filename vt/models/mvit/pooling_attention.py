"""Attention with queries, keys and values pooled over the grid of an image or a video.

Sources: Fan et al., Multiscale Vision Transformers, ICCV 2021, section 3.1; for relative positions and the pooled
residual Li et al., MViTv2, CVPR 2022. Letters: N batch, K class tokens, P tokens of the grid, P' and S tokens of the
pooled grids of queries and keys, C channels, D inner channels, h heads, d = D / h.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn

from vt.models.grid import Size, TokenPart
from vt.ops.attend import attend
from vt.ops.maps import merge_heads, split_heads
from vt.registry import MODELS

from .decomposed_position import DecomposedRelativePosition
from .token_pooling import TokenPooling


@MODELS.register_module()
class PoolingAttention(TokenPart):
    """Pooling attention: ``softmax(P(Q) P(K)^T / sqrt(d) + B) P(V)``, projected; class tokens are not pooled.

    Args:
        channels: C.
        num_heads: h.
        size: grid size during training, ``(H, W)`` or ``(T, H, W)``.
        query: options of :class:`vt.models.TokenPooling` for Q, which set the output grid; no pooling by default.
        key_value: options of the poolings of K and of V; no pooling by default.
        out_channels: D; C by default.
        relative: use decomposed relative positions as B (MViTv2, equation 4); otherwise B is 0.
        residual: add P(Q) to the output of the grid's tokens, before the projection (MViTv2, equation 5).
    """

    def __init__(
        self,
        channels: int,
        num_heads: int,
        size: Size,
        query: dict | None = None,
        key_value: dict | None = None,
        out_channels: int | None = None,
        relative: bool = False,
        residual: bool = False,
    ) -> None:
        super().__init__()
        inner = out_channels or channels
        self.num_heads = num_heads
        self.scale = (inner / num_heads) ** -0.5
        self.qkv = nn.Linear(channels, 3 * inner)
        no_pooling = dict(stride=(1,) * len(size), kernel=1)
        self.pool_query, self.pool_key, self.pool_value = (
            TokenPooling(**no_pooling | (options or {}) | dict(channels=inner // num_heads))
            for options in (query, key_value, key_value)
        )
        self.relative: Any = DecomposedRelativePosition(inner // num_heads, *self._sizes(size)) if relative else None
        self.residual = residual
        self.proj = nn.Linear(inner, inner)

    def out_size(self, size: Size) -> Size:
        """Size of the output grid, for an input grid of ``size``."""
        return self.pool_query.out_size(size)

    def key_size(self, size: Size) -> Size:
        """Size of the grid of keys and values, for an input grid of ``size``."""
        return self.pool_key.out_size(size)

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, K + P, C)`` to ``(N, K + P', D)``."""
        queries, keys, values = self._pool(x, size)
        q, k, v = (split_heads(each, self.num_heads) for each in (queries, keys, values))
        if self.relative is None:
            read = attend(q, k, v, scale=self.scale)
        elif torch.compiler.is_compiling() or torch.backends.cuda.flash_sdp_enabled():  # on a CPU, too
            q, k = self.relative.widen(q, k, *self._sizes(size), self.scale)
            missing = q.shape[-1] - v.shape[-1]  # flash attention needs the same width for Q, K and V
            read = attend(q, k, nn.functional.pad(v, (0, missing)), scale=1.0)[..., : v.shape[-1]]
        else:
            read = attend(q, k, v, self._bias(q, k, size), scale=self.scale)
        read = merge_heads(read)
        if self.residual:
            classes = read.shape[1] - math.prod(self.out_size(size))
            read = read + (nn.functional.pad(queries[:, classes:], (0, 0, classes, 0)) if classes else queries)
        return self.proj(read)

    def attention(self, x: Tensor, size: Size) -> Tensor:
        """Attention weights ``(N, h, K + P', K + S)``."""
        q, k, _ = (split_heads(each, self.num_heads) for each in self._pool(x, size))
        logits = q * self.scale @ k.transpose(-2, -1)
        return (logits if self.relative is None else logits + self._bias(q, k, size)).softmax(dim=-1)

    def _pool(self, x: Tensor, size: Size) -> list[Tensor]:
        """Return P(Q) ``(N, K + P', D)`` and P(K) and P(V) ``(N, K + S, D)``."""
        pools = self.pool_query, self.pool_key, self.pool_value
        return [pool(part, size) for pool, part in zip(pools, self.qkv(x).chunk(3, dim=-1))]

    def _bias(self, q: Tensor, k: Tensor, size: Size) -> Tensor:
        return self.relative.mask(q, k, *self._sizes(size))

    def _sizes(self, size: Size) -> tuple[Size, Size]:
        """Sizes of the grids of queries and keys."""
        return self.out_size(size), self.key_size(size)
