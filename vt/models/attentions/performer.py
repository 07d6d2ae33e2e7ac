"""Attention whose cost is linear in the tokens: the exponential of a product as a product of random features.

Letters: N batch, K class tokens, P tokens of the grid, h heads, d channels of one, m features, T tokens that attend, S
tokens that are attended to.
"""

import math

import torch
from torch import Tensor, nn

from vt.errors import UserError
from vt.ops.precision import without_autocast
from vt.registry import MODELS

from ..grid import Size
from .multi_head import Attention


def draw_directions(num_features: int, channels: int, generator: torch.Generator | None = None) -> Tensor:
    """Rows ``(m, d)``, each distributed as a normal vector of d numbers, every d of them orthogonal.

    (Performer, section 2.4.) Their lengths are drawn apart, so that what is exact in expectation for independent rows
    is so for these.
    """
    blocks = -(-num_features // channels)
    normal = torch.randn(2, blocks, channels, channels, generator=generator)
    q, r = torch.linalg.qr(normal[0])
    q = q * r.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)  # uniform over all rotations
    lengths = normal[1].norm(dim=-1)
    return (lengths.unsqueeze(-1) * q.transpose(-2, -1)).flatten(0, 1)[:num_features]


def log_features(x: Tensor, directions: Tensor) -> Tensor:
    """Logarithms of the positive features of vectors, ``(..., T, d)`` to ``(..., T, m)`` (Performer, lemma 1).

    ``phi(x) = exp(W x - |x|^2 / 2) / sqrt(m)``: the expectation of ``phi(x) . phi(y)`` over W is ``exp(x . y)``.
    """
    return x @ directions.T - (x.square().sum(dim=-1, keepdim=True) + math.log(len(directions))) / 2


def positive_features(q: Tensor, k: Tensor, directions: Tensor) -> tuple[Tensor, Tensor]:
    """Features of queries and keys, ``(..., T, m)`` and ``(..., S, m)``, whose products are in the right proportions.

    A factor of each query is left out, which its attention does not see, and factors are moved from keys to queries, so
    that none is too large, and each query meets a one.
    """
    with without_autocast(q.device.type):
        # Exponents have to be as exact as float32 has them.
        q, k = (log_features(x.to(torch.promote_types(x.dtype, directions.dtype)), directions) for x in (q, k))
    largest = k.amax(dim=-2, keepdim=True).detach()
    q = q + largest
    return (q - q.amax(dim=-1, keepdim=True).detach()).exp(), (k - largest).exp()


def feature_maps(q: Tensor, k: Tensor) -> Tensor:
    """The attention weights of features ``(..., T, m)`` and ``(..., S, m)``, materialised, ``(..., T, S)``."""
    products = q @ k.transpose(-2, -1)
    return products / products.sum(dim=-1, keepdim=True)


def linear_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """``Q (K^T V)`` over ``Q (K^T 1)`` of features ``(..., T, m)`` and ``(..., S, m)`` and values ``(..., S, d)``."""
    read = q @ (k.transpose(-2, -1) @ v.to(k.dtype)) / (q @ k.sum(dim=-2).unsqueeze(-1))
    return read.to(v.dtype)


@MODELS.register_module()
class PerformerAttention(Attention):
    """Attention of positive orthogonal random features (Performer, section 2): ``softmax`` in expectation.

    The features are part of a checkpoint, and drawn anew on request, by :meth:`redraw` or ``vt.RedrawHook``.

    Args:
        channels, num_heads, others: as in :class:`Attention`, without ``dropout``: there are no weights to drop.
        num_features: m; ``d log d`` by default, as the paper's theorem 4 has it.

    Raises:
        UserError: ``dropout``.
    """

    def __init__(self, channels: int, num_heads: int, num_features: int | None = None, **kwargs) -> None:
        if kwargs.get('dropout'):
            raise UserError('PerformerAttention: it has no attention weights that dropout could drop; leave it out')
        super().__init__(channels, num_heads, **kwargs)
        head_channels = round(self.scale**-2)
        num_features = num_features or max(1, int(head_channels * math.log(head_channels)))
        self.register_buffer('directions', draw_directions(num_features, head_channels))

    def redraw(self, generator: torch.Generator | None = None) -> None:
        """New features, of the same generator the same ones in every process."""
        self.directions.copy_(draw_directions(*self.directions.shape, generator))

    def _features(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        root = self.scale**0.5
        return positive_features(root * q, root * k, self.directions)

    def read(self, q: Tensor, k: Tensor, v: Tensor, size: Size) -> Tensor:
        return linear_attention(*self._features(q, k), v)

    def weights(self, q: Tensor, k: Tensor, size: Size) -> Tensor:
        return feature_maps(*self._features(q, k))


class TokenPerformer(nn.Module):
    """``V + project(attention(Q, K, V))``, one head, where Q, K and V have other channels than the tokens
    (T2T, section 3.1): C of the tokens that come, D of those that leave.

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
