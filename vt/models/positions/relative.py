"""Biases of an attention's logits by where two tokens of a window stand to each other.

Letters: T tokens of a window of h x w, a attention heads.
"""

import math

import torch
from torch import Tensor, nn

from vt.registry import MODELS


def relative_index(window: tuple[int, int]) -> Tensor:
    """Row of a table of ``(2 h - 1) (2 w - 1)`` offsets for each pair of tokens, ``(T, T)``."""
    places = torch.cartesian_prod(*(torch.arange(side) for side in window))  # T, 2
    offsets = places[:, None] - places + torch.tensor(window) - 1  # T, T, 2
    return offsets[..., 0] * (2 * window[1] - 1) + offsets[..., 1]


@MODELS.register_module()
class RelativePositionBias(nn.Module):
    """A learned number for each head and offset (Swin, equation 4).

    Args:
        num_heads: a.
        window: h and w.
    """

    takes_class_tokens = False

    def __init__(self, num_heads: int, window: tuple[int, int]) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros((2 * window[0] - 1) * (2 * window[1] - 1), num_heads))
        nn.init.trunc_normal_(self.table, std=0.02)
        self.register_buffer('index', relative_index(window), persistent=False)

    def offsets(self) -> Tensor:
        """The table, ``((2 h - 1) (2 w - 1), a)``."""
        return self.table

    def forward(self) -> Tensor:
        """The bias of each pair of tokens, ``(a, T, T)``."""
        size = self.index.shape
        return self.offsets()[self.index.flatten()].T.reshape(-1, *size)


@MODELS.register_module()
class ContinuousPositionBias(RelativePositionBias):
    """``16 sigmoid(MLP(offset))`` of offsets on a logarithmic scale, so that windows may grow (Swin v2, section 3.3).

    Args:
        num_heads, window: as in :class:`RelativePositionBias`.
        hidden_channels: of the MLP.
    """

    def __init__(self, num_heads: int, window: tuple[int, int], hidden_channels: int = 512) -> None:
        nn.Module.__init__(self)
        self.mlp = nn.Sequential(
            nn.Linear(2, hidden_channels), nn.ReLU(), nn.Linear(hidden_channels, num_heads, bias=False)
        )
        sides = [torch.arange(1 - side, side) * 8 / max(side - 1, 1) for side in window]  # -8 to 8
        offsets = torch.cartesian_prod(*sides)
        offsets = offsets.sign() * (offsets.abs() + 1).log2() / math.log2(8)
        self.register_buffer('coordinates', offsets, persistent=False)
        self.register_buffer('index', relative_index(window), persistent=False)

    def offsets(self) -> Tensor:
        return 16 * self.mlp(self.coordinates).sigmoid()
