"""Sines and cosines of where a token stands.

Letters: N batch, K class tokens, P places, C channels.
"""

import math

import torch
from torch import Tensor

from vt.registry import MODELS

from ..checks import require_divisible
from ..grid import Size, TokenPart
from .absolute import resize_positions


@MODELS.register_module()
class SinusoidalPosition(TokenPart):
    """``x + E`` with nothing to learn: waves over the numbers of the tokens, class tokens first, row by row.

    Sines in the even channels, cosines in the odd ones (Vaswani et al., 2017, section 3.5; T2T-ViT). Of another grid
    the places' vectors are resized, so that a place keeps its own.

    Args:
        channels: C.
        size: height and width of the grid in training.
        num_class_tokens: K.

    Raises:
        UserError: C is odd.
    """

    def __init__(self, channels: int, size: Size, num_class_tokens: int = 0) -> None:
        super().__init__()
        require_divisible('SinusoidalPosition', 'channels', channels, 'sines and cosines', 2)
        self.size = tuple(size)
        numbers = torch.arange(num_class_tokens + math.prod(size), dtype=torch.float64)
        lengths = 10000 ** (torch.arange(0, channels, 2, dtype=torch.float64) / channels)
        angles = numbers[:, None] / lengths
        waves = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)  # K + P, C
        self.register_buffer('vectors', waves[None].to(torch.get_default_dtype()), persistent=False)

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, K + P, C)`` to ``(N, K + P, C)``."""
        if tuple(size) == self.size:
            return x + self.vectors
        return x + resize_positions(self.vectors, self.size, size)
