"""Performer's attention from wide tokens to narrow ones, whose values stay beside what is read (T2T, section 3.1).

Letters: N batch, P tokens, C channels of them, D channels that leave, m features.
"""

import torch
from torch import Tensor, nn

from ..grid import Size
from .performer import draw_directions, feature_maps, linear_attention, positive_features


class TokenPerformer(nn.Module):
    """``V + project(attention(Q, K, V))``, one head, where Q, K and V have other channels than the tokens.

    Args:
        in_channels: C.
        channels: D.
        num_features: m; half of D by default.
        dropout: probability to drop an entry of what is read.
    """

    def __init__(self, in_channels: int, channels: int, num_features: int | None = None, dropout: float = 0.0) -> None:
        super().__init__()
        self.qkv = nn.Linear(in_channels, 3 * channels)
        self.proj = nn.Linear(channels, channels)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer('directions', draw_directions(num_features or max(1, channels // 2), channels))

    def redraw(self, generator: torch.Generator | None = None) -> None:
        """New features, of the same generator the same ones in every process."""
        self.directions.copy_(draw_directions(*self.directions.shape, generator))

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, P, C)`` to ``(N, P, D)``."""
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        return v + self.dropout(self.proj(linear_attention(*positive_features(q, k, self.directions), v)))

    def attention(self, x: Tensor, size: Size) -> Tensor:
        """How much each token takes from each, ``(N, 1, P, P)``."""
        q, k, _ = self.qkv(x).chunk(3, dim=-1)
        return feature_maps(*positive_features(q, k, self.directions)).unsqueeze(1)
