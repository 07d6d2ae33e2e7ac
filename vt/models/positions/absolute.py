"""A learned vector for each place of the grid.

Letters: N batch, K class tokens, P places, C channels.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from vt.errors import UserError
from vt.registry import MODELS

from ..grid import Size, split_class_tokens, to_map, to_tokens


@MODELS.register_module()
class AbsolutePosition(nn.Module):
    """``x + E``: a vector for each place and class token; for another grid the places' are resized, bicubically.

    Args:
        channels: C.
        size: height and width of the grid in training.
        num_class_tokens: K.
    """

    def __init__(self, channels: int, size: Size, num_class_tokens: int = 0) -> None:
        super().__init__()
        self.size = tuple(size)
        self.vectors = nn.Parameter(torch.zeros(1, num_class_tokens + size[0] * size[1], channels))
        nn.init.trunc_normal_(self.vectors, std=0.02)

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, K + P, C)`` to ``(N, K + P, C)``."""
        return x + (self.vectors if tuple(size) == self.size else resize_positions(self.vectors, self.size, size))

    def resized(self, vectors: Tensor) -> Tensor:
        """Vectors of another grid, a square one, for this one; as many as here are taken as they are.

        Raises:
            UserError: their grid is no square.
        """
        if vectors.shape[1] == self.vectors.shape[1]:
            return vectors
        num_class_tokens = self.vectors.shape[1] - self.size[0] * self.size[1]
        places = vectors.shape[1] - num_class_tokens
        side = math.isqrt(max(0, places))
        if side**2 != places:
            raise UserError(
                f'AbsolutePosition: {places} places are no square grid that could be resized to {self.size}'
            )
        return resize_positions(vectors, (side, side), self.size)


def resize_positions(vectors: Tensor, size: Size, to: Size) -> Tensor:
    """Vectors ``(1, K + P, C)`` of one grid for another one; class tokens keep theirs."""
    classes, places = split_class_tokens(vectors, size)
    places = interpolate(to_map(places, size), to, mode='bicubic', align_corners=False, antialias=True)
    return torch.cat([classes, to_tokens(places)], dim=1)
