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


def draw_directions(
    num_features: int, channels: int, generator: torch.Generator | None = None, length: float | None = None
) -> Tensor:
    """Rows ``(m, d)``, each distributed as a normal vector of d numbers, every d of them orthogonal.

    (Performer, section 2.4.) Their lengths are drawn apart, so that what is exact in expectation for independent rows
    is so for these; or all have the ``length`` that is given.
    """
    blocks = -(-num_features // channels)
    normal = torch.randn(2, blocks, channels, channels, generator=generator)
    q, r = torch.linalg.qr(normal[0])
    q = q * r.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)  # uniform over all rotations
    lengths = normal[1].norm(dim=-1, keepdim=True) if length is None else length
    return (lengths * q.transpose(-2, -1)).flatten(0, 1)[:num_features]


class RandomFeatures(nn.Module):
    """Random directions: part of a checkpoint, and fixed unless :meth:`redraw`, or ``vt.RedrawHook``, is called."""

    def add_directions(self, num_features: int, channels: int, length: float | None = None) -> None:
        """Draw them, as :func:`draw_directions` does."""
        self.length = length
        self.register_buffer('directions', draw_directions(num_features, channels, length=length))

    def redraw(self, generator: torch.Generator | None = None) -> None:
        """New features, of the same generator the same ones in every process."""
        self.directions.copy_(draw_directions(*self.directions.shape, generator, self.length))


def log_features(x: Tensor, directions: Tensor, epsilon: float = 0.0, sides: tuple[int, ...] = ()) -> Tensor:
    """Logarithms of the positive features of vectors, ``(..., T, d)`` to ``(..., T, m)`` (Performer, lemma 1).

    ``phi(x) = exp(W x - |x|^2 / 2) / sqrt(m)``: the expectation of ``phi(x) . phi(y)`` over W is ``exp(x . y)``. With
    an ``epsilon`` they are ``exp(W x - |x|^2 / 2 - largest) + epsilon``, where the largest is that of ``W x`` along
    ``sides`` (performer-pytorch).
    """
    products = x @ directions.T
    logs = products - (x.square().sum(dim=-1, keepdim=True) + math.log(len(directions))) / 2
    if not epsilon:
        return logs
    largest = products.amax(dim=sides, keepdim=True).detach() - math.log(len(directions)) / 2
    return torch.logaddexp(logs - largest, logs.new_tensor(epsilon).log())


def positive_features(q: Tensor, k: Tensor, directions: Tensor, epsilon: float = 0.0) -> tuple[Tensor, Tensor, Tensor]:
    """Features of queries and keys, ``(..., T, m)`` and ``(..., S, m)``, whose products are in the right proportions.

    They have a factor for each query, ``(..., T, 1)``, returned last, which its attention does not see, and factors are
    moved from keys to queries, so that none is too large, and each query meets a one.
    """
    with without_autocast(q.device.type):
        # Exponents have to be as exact as float32 has them.
        q, k = (x.to(torch.promote_types(x.dtype, directions.dtype)) for x in (q, k))
        q, k = log_features(q, directions, epsilon, (-1,)), log_features(k, directions, epsilon, (-2, -1))
    largest = k.amax(dim=-2, keepdim=True).detach()
    q = q + largest
    factor = -q.amax(dim=-1, keepdim=True).detach()
    return (q + factor).exp(), (k - largest).exp(), factor.exp()


def feature_maps(q: Tensor, k: Tensor, epsilon: float | Tensor = 0.0) -> Tensor:
    """The attention weights of features ``(..., T, m)`` and ``(..., S, m)``, materialised, ``(..., T, S)``."""
    products = q @ k.transpose(-2, -1)
    return products / (products.sum(dim=-1, keepdim=True) + epsilon)


def linear_attention(q: Tensor, k: Tensor, v: Tensor, epsilon: float | Tensor = 0.0) -> Tensor:
    """``Q (K^T V) / (Q (K^T 1) + epsilon)`` of features ``(..., T, m)``, ``(..., S, m)`` and values ``(..., S, d)``."""
    read = q @ (k.transpose(-2, -1) @ v.to(k.dtype)) / (q @ k.sum(dim=-2).unsqueeze(-1) + epsilon)
    return read.to(v.dtype)


@MODELS.register_module()
class PerformerAttention(RandomFeatures, Attention):
    """Attention of positive orthogonal random features (Performer, section 2): ``softmax`` in expectation.

    Args:
        channels, num_heads, others: as in :class:`Attention`, without ``dropout``: there are no weights to drop.
        num_features: m; ``d log d`` by default, as the paper's theorem 4 has it.
        epsilon: added to every feature. The paper has none; weights of performer-pytorch need its 1e-4.

    Raises:
        UserError: ``dropout``.
    """

    def __init__(
        self, channels: int, num_heads: int, num_features: int | None = None, epsilon: float = 0.0, **kwargs
    ) -> None:
        if kwargs.get('dropout'):
            raise UserError('PerformerAttention: it has no attention weights that dropout could drop; leave it out')
        super().__init__(channels, num_heads, **kwargs)
        head_channels = round(self.scale**-2)
        self.add_directions(num_features or max(1, int(head_channels * math.log(head_channels))), head_channels)
        self.epsilon = epsilon

    def _features(self, q: Tensor, k: Tensor) -> tuple[Tensor, ...]:
        root = self.scale**0.5
        return positive_features(root * q, root * k, self.directions, self.epsilon)[:2]

    def read(self, q: Tensor, k: Tensor, v: Tensor, size: Size) -> Tensor:
        return linear_attention(*self._features(q, k), v)

    def weights(self, q: Tensor, k: Tensor, size: Size) -> Tensor:
        return feature_maps(*self._features(q, k))


class TokenPerformer(RandomFeatures):
    """``V + project(attention(Q, K, V))``, one head, where Q, K and V have other channels than the tokens
    (T2T, section 3.1): C of the tokens that come, D of those that leave.

    There are m = D / 2 features, whose directions are ``sqrt(m)`` long, as the authors of T2T and ViTAE have them.

    Args:
        in_channels: C.
        channels: D.
        dropout: probability to drop an entry of what is read.
        epsilon: added to each query's sum of products, by which it is divided. The paper has none; ViTAE's weights need
            1e-8.
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
        """How much each token takes from each, ``(N, 1, P, P)``."""
        q, k, factor = positive_features(*self.qkv(x).chunk(3, dim=-1)[:2], self.directions)
        return feature_maps(q, k, self.epsilon * factor).unsqueeze(1)
