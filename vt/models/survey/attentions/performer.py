"""Linear attention by random features, which approximate the softmax kernel (Performer).

Letters: N batch, K class tokens, P tokens of the grid, h heads, d channels per head, m features, T queries, S keys.
"""

import math

import torch
from torch import Tensor, nn

from vt.models.grid import Size
from vt.ops.precision import without_autocast
from vt.registry import MODELS

from .multi_head import Attention


def draw_directions(
    num_features: int, channels: int, generator: torch.Generator | None = None, length: float | None = None
) -> Tensor:
    """Draw random feature directions, orthogonal within each block of d rows (Performer, section 2.4).

    Without ``length`` each row is distributed like a standard normal vector, so the estimator stays unbiased.

    Args:
        num_features: m.
        channels: d.
        generator: random number generator; PyTorch's default one if None.
        length: norm of every row; if None the norms are those of independent normal vectors.

    Returns:
        Directions, ``(m, d)``.
    """
    blocks = -(-num_features // channels)
    normal = torch.randn(2, blocks, channels, channels, generator=generator)
    q, r = torch.linalg.qr(normal[0])
    q = q * r.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)  # uniform over all rotations
    lengths = normal[1].norm(dim=-1, keepdim=True) if length is None else length
    return (lengths * q.transpose(-2, -1)).flatten(0, 1)[:num_features]


class RandomFeatures(nn.Module):
    """Mixin with random directions as a buffer, fixed unless :meth:`redraw` or ``vt.RedrawHook`` replaces them."""

    directions: Tensor

    def add_directions(self, num_features: int, channels: int, length: float | None = None) -> None:
        """Draw the directions; arguments as in :func:`draw_directions`."""
        self.length = length
        self.register_buffer('directions', draw_directions(num_features, channels, length=length))

    def redraw(self, generator: torch.Generator | None = None) -> None:
        """Draw new directions; generators with the same seed give the same ones in every process."""
        self.directions.copy_(draw_directions(*self.directions.shape, generator, self.length))


def log_features(x: Tensor, directions: Tensor) -> Tensor:
    """Compute the logarithm of positive random features (Performer, lemma 1).

    ``phi(x) = exp(W x - |x|^2 / 2) / sqrt(m)``; the expectation of ``phi(x) . phi(y)`` over W is ``exp(x . y)``.

    Args:
        x: vectors, ``(..., T, d)``.
        directions: W, ``(m, d)``.

    Returns:
        ``log phi(x)``, ``(..., T, m)``.
    """
    return x @ directions.T - (x.square().sum(dim=-1, keepdim=True) + math.log(len(directions))) / 2


def positive_features(q: Tensor, k: Tensor, directions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the features of queries and keys, rescaled so that no exponential overflows.

    Each query's features are multiplied by a factor, which cancels in its attention weights.

    Args:
        q: queries, ``(..., T, d)``.
        k: keys, ``(..., S, d)``.
        directions: as in :func:`log_features`.

    Returns:
        Features of the queries ``(..., T, m)`` and of the keys ``(..., S, m)``, and the factors ``(..., T, 1)``.
    """
    with without_autocast(q.device.type):  # the exponents need float32
        q, k = (x.to(torch.promote_types(x.dtype, directions.dtype)) for x in (q, k))
        q, k = log_features(q, directions), log_features(k, directions)
    largest = k.amax(dim=-2, keepdim=True).detach()
    q = q + largest
    factor = -q.amax(dim=-1, keepdim=True).detach()
    return (q + factor).exp(), (k - largest).exp(), factor.exp()


def feature_maps(q: Tensor, k: Tensor, epsilon: float | Tensor = 0.0) -> Tensor:
    """Materialise the attention weights ``(..., T, S)`` of features ``(..., T, m)`` and ``(..., S, m)``."""
    products = q @ k.transpose(-2, -1)
    return products / (products.sum(dim=-1, keepdim=True) + epsilon)


def linear_attention(q: Tensor, k: Tensor, v: Tensor, epsilon: float | Tensor = 0.0) -> Tensor:
    """Return ``Q (K^T V) / (Q (K^T 1) + epsilon)``: Q ``(..., T, m)``, K ``(..., S, m)``, V ``(..., S, d)``."""
    read = q @ (k.transpose(-2, -1) @ v.to(k.dtype)) / (q @ k.sum(dim=-2).unsqueeze(-1) + epsilon)
    return read.to(v.dtype)


@MODELS.register_module()
class PerformerAttention(RandomFeatures, Attention):
    """Attention with positive orthogonal random features, an approximation of softmax (Performer, section 2).

    Args:
        channels: C.
        num_heads: h.
        num_features: m; ``d log d`` by default (theorem 4).
        **kwargs: other options of :class:`Attention`: size, inner_channels, project, proj_dropout, qkv_bias.
    """

    def __init__(self, channels: int, num_heads: int, num_features: int | None = None, **kwargs) -> None:
        super().__init__(channels, num_heads, **kwargs)
        head_channels = round(self.scale**-2)
        self.add_directions(num_features or max(1, int(head_channels * math.log(head_channels))), head_channels)

    def _features(self, q: Tensor, k: Tensor) -> tuple[Tensor, ...]:
        root = self.scale**0.5
        return positive_features(root * q, root * k, self.directions)[:2]

    def read(self, q: Tensor, k: Tensor, v: Tensor, size: Size) -> Tensor:
        return linear_attention(*self._features(q, k), v)

    def weights(self, q: Tensor, k: Tensor, size: Size) -> Tensor:
        return feature_maps(*self._features(q, k))


class TokenPerformer(RandomFeatures):
    """Single-head Performer attention from C to D channels: ``V + project(attention(Q, K, V))`` (T2T, section 3.1).

    It uses m = D / 2 features and directions of norm ``sqrt(m)``, as in the code of T2T and ViTAE.

    Args:
        in_channels: C, channels of the input tokens.
        channels: D, channels of Q, K, V and the output.
        dropout: dropout probability of the projected output.
        epsilon: added to the denominator of the attention weights; 0 in the paper, 1e-8 for ViTAE's weights.
    """

    def __init__(self, in_channels: int, channels: int, dropout: float = 0.0, epsilon: float = 0.0) -> None:
        super().__init__()
        self.qkv = nn.Linear(in_channels, 3 * channels)
        self.proj = nn.Linear(channels, channels)
        self.dropout = nn.Dropout(dropout)
        num_features = max(1, channels // 2)
        self.add_directions(num_features, channels, math.sqrt(num_features))
        self.epsilon = epsilon

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, P, C)`` to ``(N, P, D)``."""
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, factor = positive_features(q, k, self.directions)
        return v + self.dropout(self.proj(linear_attention(q, k, v, self.epsilon * factor)))

    def attention(self, x: Tensor, size: Size) -> Tensor:
        """Attention weights ``(N, 1, P, P)``."""
        q, k, factor = positive_features(*self.qkv(x).chunk(3, dim=-1)[:2], self.directions)
        return feature_maps(q, k, self.epsilon * factor).unsqueeze(1)
